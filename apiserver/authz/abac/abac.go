package abac

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
)

// Mode is the authorization mode ABAC.
type Mode []Policy

var (
	_ authz.Mode   = Mode(nil)
	_ authz.Lister = Mode(nil)
)

// Authorize implements authz.Mode.
func (m Mode) Authorize(_ context.Context, q *authz.Question) (authz.Decision, string, error) {
	for i := range m {
		if p := &m[i]; p.concerns(q.User) && (q.ReadOnly() || !p.Readonly) && (p.resource(q) || p.path(q)) {
			return authz.Allow, "", nil
		}
	}
	return authz.NoOpinion, "No policy matched.", nil
}

// Rules implements authz.Lister.
func (m Mode) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	var out []rbacv1.PolicyRule
	for i := range m {
		p := &m[i]
		if !p.concerns(u) || !is(p.Namespace, namespace) {
			continue
		}
		verbs := []string{"*"}
		if p.Readonly {
			verbs = []string{"get", "list", "watch"}
		}
		if p.Resource != "" {
			out = append(out, rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{p.APIGroup}, Resources: []string{p.Resource}})
		}
		if p.NonResourcePath != "" {
			out = append(out, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: []string{p.NonResourcePath}})
		}
	}
	return out, nil
}

// concerns reports whether u has the name and the group that p names, of which there
// must be one.
func (p *Policy) concerns(u user.Info) bool {
	return (p.User != "" || p.Group != "") &&
		(p.User == "" || is(p.User, u.GetName())) &&
		(p.Group == "" || p.Group == "*" || slices.Contains(u.GetGroups(), p.Group))
}

func (p *Policy) resource(q *authz.Question) bool {
	return q.IsResource && is(p.Namespace, q.Namespace) && is(p.Resource, q.Resource) && is(p.APIGroup, q.Group)
}

func (p *Policy) path(q *authz.Question) bool {
	if q.IsResource || p.NonResourcePath == "" {
		return false
	}
	below, open := strings.CutSuffix(p.NonResourcePath, "*")
	return p.NonResourcePath == q.Path || open && strings.HasPrefix(q.Path, below)
}

// is reports whether a field of a policy allows a value. An empty one allows no value
// but the empty one: requests without a namespace, and the core group.
func is(want, value string) bool { return want == "*" || want == value }
