package rbac_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/rbac"
)

// objects are the four kinds by resource and namespace.
type objects struct {
	lists    map[schema.GroupVersionResource]map[string][]runtime.Object
	versions map[schema.GroupVersionResource]int64
}

func newObjects() *objects {
	return &objects{lists: map[schema.GroupVersionResource]map[string][]runtime.Object{}, versions: map[schema.GroupVersionResource]int64{}}
}

func (o *objects) add(gvr schema.GroupVersionResource, obj runtime.Object) {
	if o.lists[gvr] == nil {
		o.lists[gvr] = map[string][]runtime.Object{}
	}
	ns := obj.(metav1.Object).GetNamespace()
	o.lists[gvr][ns] = append(o.lists[gvr][ns], obj)
	o.versions[gvr]++
}

func (o *objects) Version(gvr schema.GroupVersionResource) int64 { return o.versions[gvr] }

func (o *objects) List(gvr schema.GroupVersionResource, ns string) ([]runtime.Object, error) {
	return o.lists[gvr][ns], nil
}

func (o *objects) Get(gvr schema.GroupVersionResource, ns, name string) (runtime.Object, error) {
	for _, obj := range o.lists[gvr][ns] {
		if obj.(metav1.Object).GetName() == name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func clusterRole(name string, r rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{r}}
}

func clusterBinding(name, role string, s rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{s}}
}

func roleBinding(ns, name, kind, role string, s rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: rbacv1.RoleRef{Kind: kind, Name: role}, Subjects: []rbacv1.Subject{s}}
}

var (
	readPods = rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}}
	oneMap   = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"}}
	health   = rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/metrics/*"}}
	scales   = rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*/scale"}}
)

func TestAuthorize(t *testing.T) {
	t.Parallel()
	o := newObjects()
	o.add(rbac.ClusterRoles, clusterRole("pods", readPods))
	o.add(rbac.ClusterRoles, clusterRole("health", health))
	o.add(rbac.ClusterRoles, clusterRole("scales", scales))
	o.add(rbac.Roles, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "map"}, Rules: []rbacv1.PolicyRule{oneMap}})
	o.add(rbac.ClusterRoleBindings, clusterBinding("pods", "pods", rbacv1.Subject{Kind: "Group", Name: "readers"}))
	o.add(rbac.ClusterRoleBindings, clusterBinding("health", "health", rbacv1.Subject{Kind: "User", Name: "bob"}))
	o.add(rbac.ClusterRoleBindings, clusterBinding("gone", "gone", rbacv1.Subject{Kind: "User", Name: "carol"}))
	o.add(rbac.RoleBindings, roleBinding("a", "map", "Role", "map", rbacv1.Subject{Kind: "ServiceAccount", Name: "app"}))
	o.add(rbac.RoleBindings, roleBinding("a", "scale", "ClusterRole", "scales", rbacv1.Subject{Kind: "User", Name: "bob"}))
	m := rbac.New(o)
	ask := func(name string, groups []string, q authz.Question) (authz.Decision, string) {
		q.User = &user.DefaultInfo{Name: name, Groups: groups}
		q.IsResource = q.Path == ""
		d, reason, err := m.Authorize(t.Context(), &q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return d, reason
	}
	const app = "system:serviceaccount:a:app"
	for _, tt := range []struct {
		name   string
		groups []string
		q      authz.Question
		want   authz.Decision
		reason string
	}{
		{"alice", []string{"readers"}, authz.Question{Verb: "list", Resource: "pods", Namespace: "a"}, authz.Allow,
			`RBAC: allowed by ClusterRoleBinding "pods" of ClusterRole "pods" to Group "readers"`},
		{"alice", []string{"readers"}, authz.Question{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a"}, authz.Allow,
			`RBAC: allowed by ClusterRoleBinding "pods" of ClusterRole "pods" to Group "readers"`},
		{"alice", []string{"readers"}, authz.Question{Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "a"}, authz.NoOpinion, ""},
		{"alice", []string{"readers"}, authz.Question{Verb: "get", Group: "metrics.k8s.io", Resource: "pods", Namespace: "a"}, authz.NoOpinion, ""},
		{"alice", nil, authz.Question{Verb: "list", Resource: "pods"}, authz.NoOpinion, ""},
		{app, nil, authz.Question{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "one"}, authz.Allow,
			`RBAC: allowed by RoleBinding "map/a" of Role "map" to ServiceAccount "app/a"`},
		{app, nil, authz.Question{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "two"}, authz.NoOpinion, ""},
		{app, nil, authz.Question{Verb: "get", Resource: "configmaps", Namespace: "b", Name: "one"}, authz.NoOpinion, ""},
		{"bob", nil, authz.Question{Verb: "get", Path: "/metrics/slis"}, authz.Allow, `RBAC: allowed by ClusterRoleBinding "health" of ClusterRole "health" to User "bob"`},
		{"bob", nil, authz.Question{Verb: "get", Path: "/healthz/etcd"}, authz.NoOpinion, ""},
		{"bob", nil, authz.Question{Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale", Namespace: "a"}, authz.Allow,
			`RBAC: allowed by RoleBinding "scale/a" of ClusterRole "scales" to User "bob"`},
		{"bob", nil, authz.Question{Verb: "update", Group: "apps", Resource: "deployments", Namespace: "a"}, authz.NoOpinion, ""},
		{"carol", nil, authz.Question{Verb: "get", Resource: "pods"}, authz.NoOpinion, `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
	} {
		if d, reason := ask(tt.name, tt.groups, tt.q); d != tt.want || reason != tt.reason {
			t.Errorf("%s %+v: %v %s\nwant %v %s", tt.name, tt.q, d, reason, tt.want, tt.reason)
		}
	}
	// What changes is seen by the next question.
	o.add(rbac.RoleBindings, roleBinding("b", "pods", "ClusterRole", "pods", rbacv1.Subject{Kind: "User", Name: "dave"}))
	if d, _ := ask("dave", nil, authz.Question{Verb: "get", Resource: "pods", Namespace: "b"}); d != authz.Allow {
		t.Error("a new role binding is not seen")
	}
	o.add(rbac.ClusterRoles, clusterRole("gone", readPods))
	if d, _ := ask("carol", nil, authz.Question{Verb: "get", Resource: "pods", Namespace: "b"}); d != authz.Allow {
		t.Error("a new role is not seen")
	}
	if rules, err := m.Rules(&user.DefaultInfo{Name: "bob"}, "a"); len(rules) != 2 || err != nil {
		t.Errorf("bob has the rules %v in a (%v), want 2", rules, err)
	}
}

// 10,000 bindings: 5,000 of the cluster and 5,000 in 100 namespaces.
func manyBindings() *objects {
	o := newObjects()
	o.add(rbac.ClusterRoles, clusterRole("pods", readPods))
	for i := range 5000 {
		s := rbacv1.Subject{Kind: "User", Name: fmt.Sprint("user-", i)}
		o.add(rbac.ClusterRoleBindings, clusterBinding(fmt.Sprint("binding-", i), "pods", s))
		o.add(rbac.RoleBindings, roleBinding(fmt.Sprint("ns-", i%100), fmt.Sprint("binding-", i), "ClusterRole", "pods", s))
	}
	return o
}

func BenchmarkAuthorize(b *testing.B) {
	o := manyBindings()
	m := rbac.New(o)
	q := &authz.Question{User: &user.DefaultInfo{Name: "user-4999", Groups: []string{"system:authenticated"}}, IsResource: true,
		Verb: "get", Resource: "pods", Namespace: "ns-7", Name: "web"}
	b.Run("allow", func(b *testing.B) {
		for b.Loop() {
			if d, _, _ := m.Authorize(b.Context(), q); d != authz.Allow {
				b.Fatal(d)
			}
		}
	})
	b.Run("after a role binding", func(b *testing.B) {
		for b.Loop() {
			o.versions[rbac.RoleBindings]++
			if _, _, err := m.Authorize(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("after a cluster role binding", func(b *testing.B) {
		for b.Loop() {
			o.versions[rbac.ClusterRoleBindings]++
			if _, _, err := m.Authorize(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
}
