package app

import (
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authzall "github.com/periplus/periplus/apiserver/authz/all"
	"github.com/periplus/periplus/apiserver/authz/webhook"
)

// AuthorizationConfig is how the API server decides who may do what.
type AuthorizationConfig struct {
	// Modes are asked in this order; none: Node, RBAC.
	Modes []string `json:"authorization-mode,omitempty"`
	// ConfigFile names the modes instead, as an AuthorizationConfiguration.
	ConfigFile string `json:"authorization-config,omitempty"`
	// PolicyFile is that of ABAC.
	PolicyFile string `json:"authorization-policy-file,omitempty"`
	// WebhookFile is a kubeconfig of the program that the mode Webhook asks, with reviews
	// of WebhookVersion, whose answers hold for some time.
	WebhookFile            string          `json:"authorization-webhook-config-file,omitempty"`
	WebhookVersion         string          `json:"authorization-webhook-version,omitempty"`
	WebhookAuthorizedTTL   metav1.Duration `json:"authorization-webhook-cache-authorized-ttl"`
	WebhookUnauthorizedTTL metav1.Duration `json:"authorization-webhook-cache-unauthorized-ttl"`
}

func defaultAuthorization() AuthorizationConfig {
	d := authzall.Defaults().Webhook
	return AuthorizationConfig{
		WebhookVersion: d.Version, WebhookAuthorizedTTL: metav1.Duration{Duration: d.AuthorizedTTL}, WebhookUnauthorizedTTL: metav1.Duration{Duration: d.UnauthorizedTTL},
	}
}

func (c *AuthorizationConfig) flags(f *pflag.FlagSet) {
	ttl := func(d *metav1.Duration, name, usage string) {
		f.DurationVar(&d.Duration, name, d.Round(time.Second), usage)
	}
	f.StringSliceVar(&c.Modes, "authorization-mode", c.Modes, "who decides what is allowed, in this order: Node, RBAC, ABAC, Webhook, AlwaysAllow, AlwaysDeny (default: Node,RBAC)")
	f.StringVar(&c.ConfigFile, "authorization-config", c.ConfigFile, "file with an AuthorizationConfiguration, instead of authorization-mode; read again when it changes")
	f.StringVar(&c.PolicyFile, "authorization-policy-file", c.PolicyFile, "policies of the mode ABAC, one a line")
	f.StringVar(&c.WebhookFile, "authorization-webhook-config-file", c.WebhookFile, "kubeconfig of the program that the mode Webhook asks")
	f.StringVar(&c.WebhookVersion, "authorization-webhook-version", c.WebhookVersion, "version of the reviews that it is asked with: v1 or v1beta1")
	ttl(&c.WebhookAuthorizedTTL, "authorization-webhook-cache-authorized-ttl", "how long it is remembered that something is allowed")
	ttl(&c.WebhookUnauthorizedTTL, "authorization-webhook-cache-unauthorized-ttl", "how long it is remembered that something is not")
}

// options are those of the API server.
func (c *AuthorizationConfig) options() authzall.Options {
	return authzall.Options{
		Modes: c.Modes, PolicyFile: c.PolicyFile, ConfigFile: c.ConfigFile,
		Webhook: webhook.Config{
			Kubeconfig: c.WebhookFile, Version: c.WebhookVersion,
			AuthorizedTTL: c.WebhookAuthorizedTTL.Duration, UnauthorizedTTL: c.WebhookUnauthorizedTTL.Duration,
		},
	}
}

func (c *AuthorizationConfig) validate() error {
	o := c.options()
	if len(o.Modes) == 0 && o.ConfigFile == "" {
		o.Modes = authzall.Defaults().Modes
	}
	return o.Validate()
}
