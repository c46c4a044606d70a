package apiserver_test

import (
	"cmp"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// handler sends what an informer shows.
func handler(seen chan<- *appsv1.Deployment) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen <- obj.(*appsv1.Deployment) },
		UpdateFunc: func(_, obj any) { seen <- obj.(*appsv1.Deployment) },
	}
}

func clientOf(t *testing.T, config *restclient.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allow gives a user one right in all namespaces.
func allow(t *testing.T, c kubernetes.Interface, user, verb, group, resource string) {
	t.Helper()
	name := "may-" + verb + "-" + resource + "-" + user
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}}
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func nested(object map[string]any, path ...string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(object, path...)
}

// sortedOwners is owners in the order of their names.
func sortedOwners(entries []metav1.ManagedFieldsEntry) string {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { return cmp.Compare(a.Manager, b.Manager) })
	return owners(entries)
}

func setNested(object map[string]any, value any, path ...string) error {
	return unstructured.SetNestedField(object, value, path...)
}
