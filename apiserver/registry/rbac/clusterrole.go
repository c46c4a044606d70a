package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func clusterRoles() *registry.Resource {
	s := registry.Funcs[*rbacv1.ClusterRole]{}
	s.ValidateCreate = func(_ context.Context, role *rbacv1.ClusterRole) field.ErrorList { return clusterRole(role) }
	s.ValidateChange = func(_ context.Context, role, _ *rbacv1.ClusterRole) field.ErrorList { return clusterRole(role) }
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
