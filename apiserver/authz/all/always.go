package all

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
)

// always is the same answer to everything: AlwaysAllow, and AlwaysDeny, which does not
// forbid what others allow.
type always authz.Decision

// Authorize implements authz.Mode.
func (a always) Authorize(context.Context, *authz.Question) (authz.Decision, string, error) {
	if authz.Decision(a) == authz.Allow {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "Everything is forbidden.", nil
}

// Rules implements authz.Lister.
func (a always) Rules(user.Info, string) ([]rbacv1.PolicyRule, error) {
	if authz.Decision(a) == authz.Allow {
		return authz.Everything(), nil
	}
	return nil, nil
}
