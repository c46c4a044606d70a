package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func roles() *registry.Resource {
	s := registry.Funcs[*rbacv1.Role]{}
	s.ValidateCreate = func(_ context.Context, role *rbacv1.Role) field.ErrorList { return policyRules(role.Rules, true) }
	s.ValidateChange = func(_ context.Context, role, _ *rbacv1.Role) field.ErrorList { return policyRules(role.Rules, true) }
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
