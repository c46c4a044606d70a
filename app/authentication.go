package app

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/periplus/periplus/apiserver/aggregator"
	authnall "github.com/periplus/periplus/apiserver/authn/all"
	"github.com/periplus/periplus/apiserver/authn/oidc"
	"github.com/periplus/periplus/apiserver/authn/requestheader"
	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
	"github.com/periplus/periplus/apiserver/authn/webhook"
	"github.com/periplus/periplus/base"
)

// AuthenticationConfig is how the API server knows who sends a request, besides the
// cluster's own certificates, service accounts and bootstrap tokens.
type AuthenticationConfig struct {
	// ClientCAFile holds further authorities of client certificates; it is read again when it changes.
	ClientCAFile string `json:"client-ca-file,omitempty"`
	// TokenFile is a file of static tokens.
	TokenFile string `json:"token-auth-file,omitempty"`
	// Anonymous lets requests without credentials be those of system:anonymous. Unset: yes,
	// unless the structured configuration says otherwise.
	Anonymous *bool `json:"anonymous-auth,omitempty"`
	// StructuredConfig is a file with an AuthenticationConfiguration; it is read again when it changes.
	StructuredConfig string `json:"authentication-config,omitempty"`

	WebhookConfig  string          `json:"authentication-token-webhook-config-file,omitempty"`
	WebhookVersion string          `json:"authentication-token-webhook-version,omitempty"`
	WebhookTTL     metav1.Duration `json:"authentication-token-webhook-cache-ttl"`

	OIDCIssuer         string            `json:"oidc-issuer-url,omitempty"`
	OIDCClientID       string            `json:"oidc-client-id,omitempty"`
	OIDCCAFile         string            `json:"oidc-ca-file,omitempty"`
	OIDCUsernameClaim  string            `json:"oidc-username-claim,omitempty"`
	OIDCUsernamePrefix string            `json:"oidc-username-prefix,omitempty"`
	OIDCGroupsClaim    string            `json:"oidc-groups-claim,omitempty"`
	OIDCGroupsPrefix   string            `json:"oidc-groups-prefix,omitempty"`
	OIDCRequiredClaims map[string]string `json:"oidc-required-claim,omitempty"`
	OIDCSigningAlgs    []string          `json:"oidc-signing-algs,omitempty"`

	// ServiceAccountKeyFiles verify service account tokens, ServiceAccountSigningKey signs
	// them in place of the cluster's own key.
	ServiceAccountKeyFiles   []string        `json:"service-account-key-file,omitempty"`
	ServiceAccountSigningKey string          `json:"service-account-signing-key-file,omitempty"`
	ServiceAccountIssuers    []string        `json:"service-account-issuer,omitempty"`
	ServiceAccountJWKSURI    string          `json:"service-account-jwks-uri,omitempty"`
	ServiceAccountMaxLife    metav1.Duration `json:"service-account-max-token-expiration"`
	ServiceAccountExtend     bool            `json:"service-account-extend-token-expiration"`
	APIAudiences             []string        `json:"api-audiences,omitempty"`
	// LegacyTokenPeriod is how long a token in a Secret may be unused before it is shut
	// out, and after that before it is deleted.
	LegacyTokenPeriod metav1.Duration `json:"legacy-service-account-token-clean-up-period"`
}

func defaultAuthenticationConfig() AuthenticationConfig {
	return AuthenticationConfig{
		WebhookVersion: "v1beta1", WebhookTTL: metav1.Duration{Duration: 2 * time.Minute}, OIDCUsernameClaim: "sub", OIDCSigningAlgs: []string{"RS256"}, ServiceAccountExtend: true,
		LegacyTokenPeriod: metav1.Duration{Duration: 365 * 24 * time.Hour},
	}
}

// optionalBool is a flag that may be unset.
type optionalBool struct{ to **bool }

func (o optionalBool) String() string {
	if o.to == nil || *o.to == nil {
		return ""
	}
	return fmt.Sprint(**o.to)
}

func (o optionalBool) Type() string { return "bool" }

func (o optionalBool) Set(s string) error {
	var on bool
	switch strings.ToLower(s) {
	case "true", "":
		on = true
	case "false":
	default:
		return fmt.Errorf("%q is not allowed: must be true or false", s)
	}
	*o.to = &on
	return nil
}

func (c *AuthenticationConfig) flags(f *pflag.FlagSet) {
	f.StringVar(&c.ClientCAFile, "client-ca-file", c.ClientCAFile, "further authorities of client certificates, besides the cluster's own; read again when it changes")
	f.StringVar(&c.TokenFile, "token-auth-file", c.TokenFile, "file of static tokens: token,user,uid,\"group1,group2\"")
	f.Var(optionalBool{&c.Anonymous}, "anonymous-auth", "let requests without credentials be those of system:anonymous (default true)")
	f.Lookup("anonymous-auth").NoOptDefVal = "true"
	f.StringVar(&c.StructuredConfig, "authentication-config", c.StructuredConfig, "file with an AuthenticationConfiguration: OpenID Connect issuers, conditions of anonymous requests; read again when it changes")
	f.StringVar(&c.WebhookConfig, "authentication-token-webhook-config-file", c.WebhookConfig, "kubeconfig file of a program that is asked about tokens")
	f.StringVar(&c.WebhookVersion, "authentication-token-webhook-version", c.WebhookVersion, "version of its TokenReviews: v1 or v1beta1")
	f.DurationVar(&c.WebhookTTL.Duration, "authentication-token-webhook-cache-ttl", c.WebhookTTL.Duration, "how long its answers hold")
	f.StringVar(&c.OIDCIssuer, "oidc-issuer-url", c.OIDCIssuer, "OpenID Connect issuer whose tokens are accepted")
	f.StringVar(&c.OIDCClientID, "oidc-client-id", c.OIDCClientID, "client for whom such tokens must be issued")
	f.StringVar(&c.OIDCCAFile, "oidc-ca-file", c.OIDCCAFile, "authority of the issuer's server")
	f.StringVar(&c.OIDCUsernameClaim, "oidc-username-claim", c.OIDCUsernameClaim, "claim with the user's name")
	f.StringVar(&c.OIDCUsernamePrefix, "oidc-username-prefix", c.OIDCUsernamePrefix, "what is put before the name (default: the issuer and #, unless the claim is email; - for nothing)")
	f.StringVar(&c.OIDCGroupsClaim, "oidc-groups-claim", c.OIDCGroupsClaim, "claim with the user's groups")
	f.StringVar(&c.OIDCGroupsPrefix, "oidc-groups-prefix", c.OIDCGroupsPrefix, "what is put before groups")
	f.StringToStringVar(&c.OIDCRequiredClaims, "oidc-required-claim", c.OIDCRequiredClaims, "claim=value that a token must have")
	f.StringSliceVar(&c.OIDCSigningAlgs, "oidc-signing-algs", c.OIDCSigningAlgs, "algorithms by which tokens may be signed")
	f.StringSliceVar(&c.ServiceAccountKeyFiles, "service-account-key-file", c.ServiceAccountKeyFiles, "further keys that verify service account tokens")
	f.StringVar(&c.ServiceAccountSigningKey, "service-account-signing-key-file", c.ServiceAccountSigningKey, "key that signs service account tokens (default: the cluster's own)")
	f.StringSliceVar(&c.ServiceAccountIssuers, "service-account-issuer", c.ServiceAccountIssuers, "issuer of service account tokens; of several the first issues and all are accepted")
	f.StringVar(&c.ServiceAccountJWKSURI, "service-account-jwks-uri", c.ServiceAccountJWKSURI, "where others find the keys that verify service account tokens")
	f.DurationVar(&c.ServiceAccountMaxLife.Duration, "service-account-max-token-expiration", c.ServiceAccountMaxLife.Duration, "longest life of a service account token (0: as long as is asked for)")
	f.BoolVar(&c.ServiceAccountExtend, "service-account-extend-token-expiration", c.ServiceAccountExtend, "let the tokens that pods get by default live for a year, and only tell of clients that do not renew them")
	f.StringSliceVar(&c.APIAudiences, "api-audiences", c.APIAudiences, "audiences of the API server (default: the issuers)")
	f.DurationVar(&c.LegacyTokenPeriod.Duration, "legacy-service-account-token-clean-up-period", c.LegacyTokenPeriod.Duration, "how long a service account token in a Secret may be unused before it is shut out, and after that before it is deleted")
}

func (c *AuthenticationConfig) validate() error {
	var errs []error
	if c.StructuredConfig != "" && (c.OIDCIssuer != "" || c.OIDCClientID != "") {
		errs = append(errs, errors.New("authentication-config file and oidc-* flags are mutually exclusive"))
	}
	if c.LegacyTokenPeriod.Duration <= 0 {
		errs = append(errs, fmt.Errorf("legacy-service-account-token-clean-up-period: %s is not allowed: must be positive", c.LegacyTokenPeriod.Duration))
	}
	if c.WebhookVersion != "v1" && c.WebhookVersion != "v1beta1" {
		errs = append(errs, fmt.Errorf("authentication-token-webhook-version: %q is not allowed: must be v1 or v1beta1", c.WebhookVersion))
	}
	if c.OIDCIssuer != "" && !strings.HasPrefix(c.OIDCIssuer, "https://") {
		errs = append(errs, fmt.Errorf("oidc-issuer-url: %q is not allowed: must be an https:// URL", c.OIDCIssuer))
	}
	if d := c.ServiceAccountMaxLife.Duration; d != 0 && (d < time.Hour || d > 1<<32*time.Second) {
		errs = append(errs, fmt.Errorf("service-account-max-token-expiration: %s is not allowed: must be between 1 hour and 2^32 seconds", d))
	}
	return errors.Join(errs...)
}

// options reads the files that the configuration names.
func (c *AuthenticationConfig) options(t aggregator.Trust) (authnall.Options, error) {
	o := authnall.Options{
		Issuers: c.ServiceAccountIssuers, Audiences: c.APIAudiences, JWKSURI: c.ServiceAccountJWKSURI,
		MaxTokenLifetime: c.ServiceAccountMaxLife.Duration, ExtendTokens: c.ServiceAccountExtend,
		TokenFile: c.TokenFile, AuthenticationConfig: c.StructuredConfig,
		OIDC: oidc.Flags{
			IssuerURL: c.OIDCIssuer, ClientID: c.OIDCClientID, CAFile: c.OIDCCAFile, UsernameClaim: c.OIDCUsernameClaim, UsernamePrefix: c.OIDCUsernamePrefix,
			GroupsClaim: c.OIDCGroupsClaim, GroupsPrefix: c.OIDCGroupsPrefix, RequiredClaims: c.OIDCRequiredClaims, SigningAlgorithms: c.OIDCSigningAlgs,
		},
		Webhook: webhook.Config{Kubeconfig: c.WebhookConfig, Version: c.WebhookVersion, CacheTTL: c.WebhookTTL.Duration},
		RequestHeader: requestheader.Config{
			CA: t.ProxyCA, Names: t.ProxyNames, Users: t.UserHeaders, UIDs: t.UIDHeaders, Groups: t.GroupHeaders, ExtraPrefixes: t.ExtraPrefixes,
		},
	}
	if c.Anonymous != nil {
		o.Anonymous = &apiserverconfig.AnonymousAuthConfig{Enabled: *c.Anonymous}
	}
	for _, path := range c.ServiceAccountKeyFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			return o, fmt.Errorf("service-account-key-file: %w", err)
		}
		keys, err := serviceaccount.ParseKeys(text)
		if err != nil {
			return o, fmt.Errorf("service-account-key-file %s: %w", path, err)
		}
		for _, k := range keys {
			o.Keys = o.Keys.With(k)
		}
	}
	if c.ServiceAccountSigningKey == "" {
		return o, nil
	}
	var err error
	if o.Signer, err = readSigner(c.ServiceAccountSigningKey); err != nil {
		return o, fmt.Errorf("service-account-signing-key-file: %w", err)
	}
	return o, nil
}

func readSigner(path string) (crypto.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := serviceaccount.ParseSigner(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// legacyToken signs a token of a service account for a Secret.
func (s *controlPlane) legacyToken(account *corev1.ServiceAccount, secret string) (string, error) {
	var signer crypto.Signer = s.id.accounts
	if path := s.config.ServiceAccountSigningKey; path != "" {
		var err error
		if signer, err = readSigner(path); err != nil {
			return "", err
		}
	}
	return serviceaccount.IssueLegacy(signer, account, secret)
}

// clientCAs are the authorities of client certificates: the cluster's own and those of the file.
func (s *controlPlane) clientCAs() (roots *x509.CertPool, text []byte, err error) {
	roots, text = s.id.ca.Pool(), s.id.ca.PEM
	if s.config.ClientCAFile == "" {
		return roots, text, nil
	}
	more, err := os.ReadFile(s.config.ClientCAFile)
	if err != nil {
		return nil, nil, fmt.Errorf("client-ca-file: %w", err)
	}
	if roots = roots.Clone(); !roots.AppendCertsFromPEM(more) {
		return nil, nil, fmt.Errorf("client-ca-file: %s holds no certificate", s.config.ClientCAFile)
	}
	return roots, append(append([]byte(nil), text...), more...), nil
}

// reloadFiles reads files again that change, until ctx ends.
func (s *controlPlane) reloadFiles(ctx context.Context) error {
	log := s.log.With(base.KeyComponent, "apiserver")
	var files []string
	react := map[string]func() error{}
	add := func(path string, f func() error) {
		if path != "" {
			files = append(files, path)
			react[path] = f
		}
	}
	add(s.config.ClientCAFile, func() error {
		roots, text, err := s.clientCAs()
		if err != nil {
			return err
		}
		return s.api.TrustClients(ctx, roots, text)
	})
	counted := func(what string, reload func() error) func() error {
		return func() error {
			err := reload()
			s.api.Metrics().Reloaded(what, s.advertise().String(), err)
			return err
		}
	}
	if s.config.EncryptionReload {
		add(s.config.EncryptionFile, counted("encryption", func() error { return s.api.Encryption().Reload() }))
	}
	add(s.config.StructuredConfig, counted("authentication", s.api.Authentication().Reload))
	add(s.config.AuthorizationConfig.ConfigFile, counted("authorization", s.api.Authorization().Reload))
	return watchFiles(ctx, files, func(path string) {
		if err := react[path](); err != nil {
			log.Error("a changed file is not in force", base.KeyPath, path, base.KeyError, err)
		}
	})
}
