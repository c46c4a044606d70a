package rbac

import (
	"context"
	"fmt"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
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
	index    *index
}

var _ authz.Mode = (*Mode)(nil)

// New returns the mode over the given objects.
func New(objects Objects) *Mode { return &Mode{objects: objects} }

// A grant is the rules of one binding.
type grant struct {
	namespace string // "" for the whole cluster
	rules     []rbacv1.PolicyRule
	by        string // for the reason
}

type index struct {
	users  map[string][]grant
	groups map[string][]grant
}

// Authorize implements authz.Mode.
func (m *Mode) Authorize(_ context.Context, q *authz.Question) (authz.Decision, string) {
	if by, ok := m.current().find(q.User, q.Namespace, func(r *rbacv1.PolicyRule) bool { return allows(r, q) }); ok {
		return authz.Allow, "RBAC: allowed by " + by
	}
	return authz.NoOpinion, ""
}

// Rules returns the rules that apply to u in a namespace.
func (m *Mode) Rules(u user.Info, namespace string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	m.current().find(u, namespace, func(r *rbacv1.PolicyRule) bool {
		out = append(out, *r)
		return false
	})
	return out
}

// find calls visit with the rules that apply to u until it returns true.
func (x *index) find(u user.Info, namespace string, visit func(*rbacv1.PolicyRule) bool) (string, bool) {
	try := func(grants []grant) (string, bool) {
		for i := range grants {
			g := &grants[i]
			if g.namespace != "" && g.namespace != namespace {
				continue
			}
			for j := range g.rules {
				if visit(&g.rules[j]) {
					return g.by, true
				}
			}
		}
		return "", false
	}
	if by, ok := try(x.users[u.GetName()]); ok {
		return by, true
	}
	for _, g := range u.GetGroups() {
		if by, ok := try(x.groups[g]); ok {
			return by, true
		}
	}
	return "", false
}

// current returns the index, rebuilt if a role or binding has changed.
func (m *Mode) current() *index {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := [4]int64{}
	for i, gvr := range []schema.GroupVersionResource{Roles, RoleBindings, ClusterRoles, ClusterRoleBindings} {
		now[i] = m.objects.Version(gvr)
	}
	if m.index == nil || now != m.versions {
		m.index, m.versions = m.build(), now
	}
	return m.index
}

func (m *Mode) build() *index {
	x := &index{users: map[string][]grant{}, groups: map[string][]grant{}}
	bindings, _ := m.objects.List(ClusterRoleBindings, "")
	for _, obj := range bindings {
		b := obj.(*rbacv1.ClusterRoleBinding)
		by := fmt.Sprintf("ClusterRoleBinding %q of %s %q to ", b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		x.add(b.Subjects, "", grant{rules: m.rules("", b.RoleRef), by: by})
	}
	bindings, _ = m.objects.List(RoleBindings, "")
	for _, obj := range bindings {
		b := obj.(*rbacv1.RoleBinding)
		by := fmt.Sprintf("RoleBinding \"%s/%s\" of %s %q to ", b.Name, b.Namespace, b.RoleRef.Kind, b.RoleRef.Name)
		x.add(b.Subjects, b.Namespace, grant{namespace: b.Namespace, rules: m.rules(b.Namespace, b.RoleRef), by: by})
	}
	return x
}

// rules returns the rules of a role; a role that does not exist grants nothing.
func (m *Mode) rules(namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	switch ref.Kind {
	case "ClusterRole":
		if obj, err := m.objects.Get(ClusterRoles, "", ref.Name); err == nil {
			return obj.(*rbacv1.ClusterRole).Rules
		}
	case "Role":
		if obj, err := m.objects.Get(Roles, namespace, ref.Name); err == nil {
			return obj.(*rbacv1.Role).Rules
		}
	}
	return nil
}

func (x *index) add(subjects []rbacv1.Subject, namespace string, g grant) {
	if len(g.rules) == 0 {
		return
	}
	prefix := g.by
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			g.by = prefix + fmt.Sprintf("User %q", s.Name)
			x.users[s.Name] = append(x.users[s.Name], g)
		case rbacv1.GroupKind:
			g.by = prefix + fmt.Sprintf("Group %q", s.Name)
			x.groups[s.Name] = append(x.groups[s.Name], g)
		case rbacv1.ServiceAccountKind:
			ns := s.Namespace
			if ns == "" {
				ns = namespace
			}
			g.by = prefix + fmt.Sprintf("ServiceAccount \"%s/%s\"", s.Name, ns)
			name := serviceaccount.MakeUsername(ns, s.Name)
			x.users[name] = append(x.users[name], g)
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
	return has(r.APIGroups, q.Group) && hasResource(r.Resources, q) && (len(r.ResourceNames) == 0 || hasExact(r.ResourceNames, q.Name))
}

func has(list []string, s string) bool {
	for _, x := range list {
		if x == s || x == "*" {
			return true
		}
	}
	return false
}

func hasExact(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
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
