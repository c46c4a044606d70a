package rbac

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// A grant is what one binding gives to one of its subjects. It points into the
// binding and the role, which are immutable.
type grant struct {
	rules   []rbacv1.PolicyRule
	err     error // the role does not exist
	binding string
	space   string // of the binding, "" for the whole cluster
	ref     *rbacv1.RoleRef
	subject *rbacv1.Subject
}

// String names the binding, role and subject in upstream's words.
func (g *grant) String() string {
	subject := fmt.Sprintf("%s %q", g.subject.Kind, g.subject.Name)
	if g.subject.Kind == rbacv1.ServiceAccountKind {
		subject = fmt.Sprintf(`%s "%s/%s"`, g.subject.Kind, g.subject.Name, g.account())
	}
	if g.space == "" {
		return fmt.Sprintf("ClusterRoleBinding %q of %s %q to %s", g.binding, g.ref.Kind, g.ref.Name, subject)
	}
	return fmt.Sprintf(`RoleBinding "%s/%s" of %s %q to %s`, g.binding, g.space, g.ref.Kind, g.ref.Name, subject)
}

// account is the namespace of the service account.
func (g *grant) account() string {
	if g.subject.Namespace != "" {
		return g.subject.Namespace
	}
	return g.space
}

// An index finds grants by subject. It is immutable once it is built.
type index struct {
	users  map[string][]*grant // service accounts as well
	groups map[string][]*grant
}

// current returns the index of the cluster and, with a namespace, that of the
// namespace's role bindings. Indexes are built when they are asked for: a new
// role binding costs one namespace's, not the cluster's.
func (m *Mode) current(namespace string) (cluster, space *index) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := [4]int64{}
	for i, gvr := range [4]schema.GroupVersionResource{Roles, RoleBindings, ClusterRoles, ClusterRoleBindings} {
		now[i] = m.objects.Version(gvr)
	}
	if now != m.versions {
		before := m.versions
		m.versions = now
		if [2]int64(now[2:]) != [2]int64(before[2:]) {
			m.cluster = nil
		}
		if [3]int64(now[:3]) != [3]int64(before[:3]) {
			clear(m.spaces)
		}
	}
	if m.cluster == nil {
		m.cluster = m.buildCluster()
	}
	if namespace == "" {
		return m.cluster, nil
	}
	space = m.spaces[namespace]
	if space == nil {
		if m.spaces == nil {
			m.spaces = map[string]*index{}
		}
		space = m.buildSpace(namespace)
		// Anybody may ask about any number of namespaces that do not exist.
		if space != empty {
			m.spaces[namespace] = space
		}
	}
	return m.cluster, space
}

// empty is the index of a namespace without role bindings.
var empty = &index{}

func (m *Mode) buildCluster() *index {
	bindings, _ := m.objects.List(ClusterRoleBindings, "")
	x := &index{users: make(map[string][]*grant, len(bindings)), groups: map[string][]*grant{}}
	for _, obj := range bindings {
		b := obj.(*rbacv1.ClusterRoleBinding)
		m.add(x, grant{binding: b.Name, ref: &b.RoleRef}, b.Subjects)
	}
	return x
}

func (m *Mode) buildSpace(namespace string) *index {
	bindings, _ := m.objects.List(RoleBindings, namespace)
	if len(bindings) == 0 {
		return empty
	}
	x := &index{users: make(map[string][]*grant, len(bindings)), groups: map[string][]*grant{}}
	for _, obj := range bindings {
		b := obj.(*rbacv1.RoleBinding)
		m.add(x, grant{binding: b.Name, space: b.Namespace, ref: &b.RoleRef}, b.Subjects)
	}
	return x
}

// add enters g for each subject.
func (m *Mode) add(x *index, g grant, subjects []rbacv1.Subject) {
	g.rules, g.err = m.rules(g.space, g.ref)
	for i := range subjects {
		mine := g
		mine.subject = &subjects[i]
		switch s := mine.subject; s.Kind {
		case rbacv1.UserKind:
			x.users[s.Name] = append(x.users[s.Name], &mine)
		case rbacv1.GroupKind:
			x.groups[s.Name] = append(x.groups[s.Name], &mine)
		case rbacv1.ServiceAccountKind:
			if mine.account() != "" {
				name := serviceaccount.MakeUsername(mine.account(), s.Name)
				x.users[name] = append(x.users[name], &mine)
			}
		}
	}
}

// rules returns the rules of a role, or that it does not exist.
func (m *Mode) rules(namespace string, ref *rbacv1.RoleRef) ([]rbacv1.PolicyRule, error) {
	switch ref.Kind {
	case "ClusterRole":
		if obj, err := m.objects.Get(ClusterRoles, "", ref.Name); err == nil {
			return obj.(*rbacv1.ClusterRole).Rules, nil
		}
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), ref.Name)
	case "Role":
		if obj, err := m.objects.Get(Roles, namespace, ref.Name); err == nil {
			return obj.(*rbacv1.Role).Rules, nil
		}
		return nil, apierrors.NewNotFound(rbacv1.Resource("role"), ref.Name)
	}
	return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
}
