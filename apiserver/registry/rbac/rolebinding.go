package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func roleBindings() *registry.Resource {
	s := registry.Funcs[*rbacv1.RoleBinding]{}
	s.DefaultFunc = func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }
	s.ValidateCreate = func(_ context.Context, b *rbacv1.RoleBinding) field.ErrorList {
		return binding(&b.RoleRef, b.Subjects, true)
	}
	s.ValidateChange = func(_ context.Context, b, old *rbacv1.RoleBinding) field.ErrorList {
		errs := binding(&b.RoleRef, b.Subjects, true)
		return append(errs, validation.Immutable(b.RoleRef, old.RoleRef, field.NewPath("roleRef"))...)
	}
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
