package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/apiserver/authz"
)

// Config says whom to ask, and how.
type Config struct {
	// Name tells webhooks apart in messages.
	Name string
	// Kubeconfig is the path of a file with the program as cluster and, as user, how this
	// server proves itself to it.
	Kubeconfig string
	// Version of the reviews: v1 or v1beta1.
	Version string
	// Timeout of one question; 0: 30 s.
	Timeout time.Duration
	// AuthorizedTTL and UnauthorizedTTL are how long answers hold; 0: they do not.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// DenyOnError refuses what the program gives no answer to; otherwise the next mode is asked.
	DenyOnError bool
	// Conditions are expressions that must all hold for a question to be put.
	Conditions []apiserver.WebhookMatchCondition
	Compiler   cel.Compiler
}

// Mode is the authorization mode Webhook.
type Mode struct{ asks *webhook.WebhookAuthorizer }

var (
	_ authz.Mode   = (*Mode)(nil)
	_ authz.Lister = (*Mode)(nil)
)

// New returns the mode. An error names the file.
func New(c Config) (*Mode, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	client, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Kubeconfig, err)
	}
	client.QPS = -1 // it is asked once a request
	if client.Timeout = c.Timeout; client.Timeout == 0 {
		client.Timeout = 30 * time.Second
	}
	onError := authorizer.DecisionNoOpinion
	if c.DenyOnError {
		onError = authorizer.DecisionDeny
	}
	asks, err := webhook.New(client, c.Version, c.AuthorizedTTL, c.UnauthorizedTTL, *webhook.DefaultRetryBackoff(), onError,
		c.Conditions, c.Name, metrics.NoopAuthorizerMetrics{}, c.Compiler)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Kubeconfig, err)
	}
	return &Mode{asks}, nil
}

// Authorize implements authz.Mode.
func (m *Mode) Authorize(ctx context.Context, q *authz.Question) (authz.Decision, string, error) {
	d, reason, err := m.asks.Authorize(ctx, q.Attributes())
	switch d {
	case authorizer.DecisionAllow:
		return authz.Allow, reason, err
	case authorizer.DecisionDeny:
		return authz.Deny, reason, err
	default:
		return authz.NoOpinion, reason, err
	}
}

// Rules implements authz.Lister.
func (m *Mode) Rules(user.Info, string) ([]rbacv1.PolicyRule, error) {
	return nil, errors.New("webhook authorizer does not support user rule resolution")
}
