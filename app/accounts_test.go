package app

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/apiserver/authz/rbac"
	controllersall "github.com/periplus/periplus/controllers/all"
)

// TestAccounts: every controller acts as an account that is bound to a role.
func TestAccounts(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset()
	if err := rbac.BootstrapCluster(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := rbac.BootstrapNamespaces(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	bound := map[string]bool{}
	everywhere, err := c.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range everywhere.Items {
		for _, s := range b.Subjects {
			bound[s.Namespace+"/"+s.Name] = true
		}
	}
	within, err := c.RbacV1().RoleBindings("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range within.Items {
		for _, s := range b.Subjects {
			bound[s.Namespace+"/"+s.Name] = true
		}
	}
	for _, x := range controllersall.Controllers() {
		if x.Name == "serviceaccount-token-controller" {
			continue // acts as the manager itself, as upstream
		}
		if !bound["kube-system/"+accountOf(x.Name)] {
			t.Errorf("%s: the account kube-system/%s has no role", x.Name, accountOf(x.Name))
		}
	}
}
