package all

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/measure"
)

// counted is a mode whose decisions are counted.
type counted struct {
	authz.Mode
	decisions *measure.Decisions
}

var _ authz.Lister = counted{}

// Authorize implements authz.Mode.
func (c counted) Authorize(ctx context.Context, q *authz.Question) (authz.Decision, string, error) {
	d, reason, err := c.Mode.Authorize(ctx, q)
	switch d {
	case authz.Allow:
		c.decisions.Allowed()
	case authz.Deny:
		c.decisions.Denied()
	}
	return d, reason, err
}

// Rules implements authz.Lister, with what the mode can tell.
func (c counted) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	if l, ok := c.Mode.(authz.Lister); ok {
		return l.Rules(u, namespace)
	}
	return nil, nil
}
