package rbac_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/rbac"
)

// TestDecisions asks the default policy what testdata/decisions.txt has: questions to
// upstream's v1.37 default policy, and its answers. A line is
//
//	yes|no user verb [group:]resource[/subresource] namespace name
//	yes|no user verb /path
//
// where "-" is none. In the namespace team, alice has the role view, bob edit and carol
// admin; dave has view everywhere.
func TestDecisions(t *testing.T) {
	t.Parallel()
	m := rbac.New(defaults(t))
	f, err := os.Open("testdata/decisions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		word := strings.Fields(lines.Text())
		q := &authz.Question{User: named(word[1]), Verb: word[2], Path: word[3]}
		if !strings.HasPrefix(q.Path, "/") {
			q.IsResource, q.Path, q.Version = true, "", "v1"
			group, resource, ok := strings.Cut(word[3], ":")
			if !ok {
				group, resource = "", group
			}
			q.Group = group
			q.Resource, q.Subresource, _ = strings.Cut(resource, "/")
			q.Namespace, q.Name = strings.TrimPrefix(word[4], "-"), strings.TrimPrefix(word[5], "-")
		}
		want := authz.NoOpinion
		if word[0] == "yes" {
			want = authz.Allow
		}
		if d, reason, err := m.Authorize(t.Context(), q); d != want || err != nil {
			t.Errorf("%s: decision %d, reason %q, error %v", lines.Text(), d, reason, err)
		}
	}
	if n < 1000 {
		t.Errorf("%d questions in the file", n)
	}
}

// named is the user of that name with the groups that authentication gives it.
func named(name string) user.Info {
	u := &user.DefaultInfo{Name: name, Groups: []string{user.AllAuthenticated}}
	switch {
	case name == user.Anonymous:
		u.Groups = []string{user.AllUnauthenticated}
	case name == "root":
		u.Groups = append(u.Groups, user.SystemPrivilegedGroup)
	case name == "probe":
		u.Groups = append(u.Groups, user.MonitoringGroup)
	case strings.HasPrefix(name, "system:node:"):
		u.Groups = append(u.Groups, user.NodesGroup)
	}
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		u.Groups = append(u.Groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	return u
}

// defaults are the roles and bindings of every cluster, with the aggregated roles filled
// in as the controller does, and those of the people above.
func defaults(t *testing.T) *objects {
	t.Helper()
	c := fake.NewClientset()
	if err := rbac.BootstrapCluster(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := rbac.BootstrapNamespaces(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	o := newObjects()
	all := metav1.ListOptions{}
	clusterRoles, err := c.RbacV1().ClusterRoles().List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // roles are made of roles that are made of roles
		for i := range clusterRoles.Items {
			aggregate(t, &clusterRoles.Items[i], clusterRoles.Items)
		}
	}
	for i := range clusterRoles.Items {
		o.add(rbac.ClusterRoles, &clusterRoles.Items[i])
	}
	clusterBindings, err := c.RbacV1().ClusterRoleBindings().List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range clusterBindings.Items {
		o.add(rbac.ClusterRoleBindings, &clusterBindings.Items[i])
	}
	roles, err := c.RbacV1().Roles("").List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range roles.Items {
		o.add(rbac.Roles, &roles.Items[i])
	}
	bindings, err := c.RbacV1().RoleBindings("").List(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range bindings.Items {
		o.add(rbac.RoleBindings, &bindings.Items[i])
	}
	for name, role := range map[string]string{"alice": "view", "bob": "edit", "carol": "admin"} {
		o.add(rbac.RoleBindings, roleBinding("team", name, "ClusterRole", role, rbacv1.Subject{Kind: "User", Name: name}))
	}
	o.add(rbac.ClusterRoleBindings, clusterBinding("dave", "view", rbacv1.Subject{Kind: "User", Name: "dave"}))
	return o
}

func aggregate(t *testing.T, r *rbacv1.ClusterRole, all []rbacv1.ClusterRole) {
	t.Helper()
	if r.AggregationRule == nil {
		return
	}
	r.Rules = nil
	for i := range r.AggregationRule.ClusterRoleSelectors {
		s, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			t.Fatal(err)
		}
		for j := range all {
			if other := &all[j]; other.Name != r.Name && s.Matches(labels.Set(other.Labels)) {
				r.Rules = append(r.Rules, other.Rules...)
			}
		}
	}
}
