package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func clusterRoles() *registry.Resource {
	s := registry.Funcs[*rbacv1.ClusterRole]{}
	s.Name = objectName
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("clusterroles"),
		Kind:     "ClusterRole",
		Singular: "clusterrole",
		New:      kind.Make[rbacv1.ClusterRole],
		NewList:  kind.Make[rbacv1.ClusterRoleList],
		Strategy: s,
	}
}
