package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func roles() *registry.Resource {
	s := registry.Funcs[*rbacv1.Role]{}
	s.Name = objectName
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("roles"),
		Kind:       "Role",
		Singular:   "role",
		Namespaced: true,
		New:        kind.Make[rbacv1.Role],
		NewList:    kind.Make[rbacv1.RoleList],
		Strategy:   s,
	}
}
