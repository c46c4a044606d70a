package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func clusterRoleBindings() *registry.Resource {
	s := registry.Funcs[*rbacv1.ClusterRoleBinding]{}
	s.Name = objectName
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("clusterrolebindings"),
		Kind:     "ClusterRoleBinding",
		Singular: "clusterrolebinding",
		New:      kind.Make[rbacv1.ClusterRoleBinding],
		NewList:  kind.Make[rbacv1.ClusterRoleBindingList],
		Strategy: s,
	}
}
