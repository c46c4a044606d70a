package all

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/periplus/periplus/apiserver/authz/webhook"
)

// The modes.
const (
	AlwaysAllow = "AlwaysAllow"
	AlwaysDeny  = "AlwaysDeny"
	ABAC        = "ABAC"
	Webhook     = "Webhook"
	RBAC        = "RBAC"
	Node        = "Node"
)

// Modes are all modes.
var Modes = []string{ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook}

// Options say which modes there are, in their order.
type Options struct {
	// Modes are asked in this order. Default: Node, RBAC.
	Modes []string
	// PolicyFile is that of ABAC.
	PolicyFile string
	// Webhook is that of the mode Webhook.
	Webhook webhook.Config
	// ConfigFile names the modes instead.
	ConfigFile string
}

// Defaults are used where nothing is said.
func Defaults() Options {
	return Options{
		Modes:   []string{Node, RBAC},
		Webhook: webhook.Config{Version: "v1beta1", AuthorizedTTL: 5 * time.Minute, UnauthorizedTTL: 30 * time.Second},
	}
}

// Validate returns what is wrong with o.
func (o *Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.ConfigFile != "" {
		if len(o.Modes) > 0 || o.Webhook.Kubeconfig != "" {
			bad("--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined")
		}
		return errors.Join(errs...)
	}
	for i, m := range o.Modes {
		switch {
		case !slices.Contains(Modes, m):
			bad("authorization-mode %q is not a valid mode: it must be one of %s", m, strings.Join(Modes, ", "))
		case slices.Contains(o.Modes[:i], m):
			bad("authorization-mode %q has mode specified more than once", o.Modes)
		}
	}
	has := func(m string) bool { return slices.Contains(o.Modes, m) }
	switch {
	case has(ABAC) && o.PolicyFile == "":
		bad("authorization-mode ABAC's authorization policy file not passed")
	case !has(ABAC) && o.PolicyFile != "":
		bad("cannot specify --authorization-policy-file without mode ABAC")
	}
	switch {
	case has(Webhook) && o.Webhook.Kubeconfig == "":
		bad("authorization-mode Webhook's authorization config file not passed")
	case !has(Webhook) && o.Webhook.Kubeconfig != "":
		bad("cannot specify --authorization-webhook-config-file without mode Webhook")
	}
	if v := o.Webhook.Version; v != "" && v != "v1" && v != "v1beta1" {
		bad("authorization-webhook-version %q is not valid: it must be v1 or v1beta1", v)
	}
	return errors.Join(errs...)
}
