package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func roleBindings() *registry.Resource {
	s := registry.Funcs[*rbacv1.RoleBinding]{}
	s.Name = objectName
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("rolebindings"),
		Kind:       "RoleBinding",
		Singular:   "rolebinding",
		Namespaced: true,
		New:        kind.Make[rbacv1.RoleBinding],
		NewList:    kind.Make[rbacv1.RoleBindingList],
		Strategy:   s,
	}
}
