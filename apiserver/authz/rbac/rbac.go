package rbac

import (
	"context"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/registry"
)

// The four kinds.
var (
	Roles               = rbacv1.SchemeGroupVersion.WithResource("roles")
	RoleBindings        = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	ClusterRoles        = rbacv1.SchemeGroupVersion.WithResource("clusterroles")
	ClusterRoleBindings = rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")
)

// Objects reads the four kinds. Version changes whenever one of the objects of
// a resource does.
type Objects interface {
	registry.Reader
	Version(gvr schema.GroupVersionResource) int64
}

// Mode is the authorization mode RBAC.
type Mode struct {
	objects Objects

	mu       sync.Mutex
	versions [4]int64
	cluster  *index            // of the cluster role bindings
	spaces   map[string]*index // of the role bindings, by namespace, those that were asked for
}

var _ authz.Mode = (*Mode)(nil)

// New returns the mode over the given objects.
func New(objects Objects) *Mode { return &Mode{objects: objects} }

// Authorize implements authz.Mode.
func (m *Mode) Authorize(_ context.Context, q *authz.Question) (authz.Decision, string, error) {
	var missing []error
	var by string
	m.visit(q.User, q.Namespace, func(g *grant) bool {
		if g.err != nil {
			missing = append(missing, g.err)
		}
		for i := range g.rules {
			if allows(&g.rules[i], q) {
				by = g.String()
				return true
			}
		}
		return false
	})
	switch {
	case by != "":
		return authz.Allow, "RBAC: allowed by " + by, nil
	case missing != nil:
		return authz.NoOpinion, "RBAC: " + utilerrors.NewAggregate(missing).Error(), nil
	}
	return authz.NoOpinion, "", nil
}

// Rules implements authz.Lister.
func (m *Mode) Rules(u user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	var out []rbacv1.PolicyRule
	var missing []error
	m.visit(u, namespace, func(g *grant) bool {
		out = append(out, g.rules...)
		if g.err != nil {
			missing = append(missing, g.err)
		}
		return false
	})
	return out, utilerrors.NewAggregate(missing)
}

// rulesOf are the rules that are there.
func (m *Mode) rulesOf(u user.Info, namespace string) []rbacv1.PolicyRule {
	rules, _ := m.Rules(u, namespace)
	return rules
}

// visit shows the grants of u, those of the whole cluster first, until show returns true.
func (m *Mode) visit(u user.Info, namespace string, show func(*grant) bool) {
	cluster, space := m.current(namespace)
	for _, x := range []*index{cluster, space} {
		if x == nil {
			continue
		}
		if slices.ContainsFunc(x.users[u.GetName()], show) {
			return
		}
		for _, g := range u.GetGroups() {
			if slices.ContainsFunc(x.groups[g], show) {
				return
			}
		}
	}
}

// allows reports whether a rule covers what is asked.
func allows(r *rbacv1.PolicyRule, q *authz.Question) bool {
	if !has(r.Verbs, q.Verb) {
		return false
	}
	if !q.IsResource {
		for _, p := range r.NonResourceURLs {
			if p == "*" || p == q.Path || strings.HasSuffix(p, "*") && strings.HasPrefix(q.Path, strings.TrimRight(p, "*")) {
				return true
			}
		}
		return false
	}
	return has(r.APIGroups, q.Group) && hasResource(r.Resources, q) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.Name))
}

func has(list []string, s string) bool {
	return slices.Contains(list, s) || slices.Contains(list, "*")
}

// hasResource understands "pods/log", "*/scale" and "*".
func hasResource(list []string, q *authz.Question) bool {
	for _, x := range list {
		if x == "*" {
			return true
		}
		resource, sub, _ := strings.Cut(x, "/")
		if sub == q.Subresource && (resource == q.Resource || resource == "*" && sub != "") {
			return true
		}
	}
	return false
}
