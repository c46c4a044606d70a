package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func clusterRoleBindings() *registry.Resource {
	s := registry.Funcs[*rbacv1.ClusterRoleBinding]{}
	s.DefaultFunc = func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) }
	s.ValidateCreate = func(_ context.Context, b *rbacv1.ClusterRoleBinding) field.ErrorList {
		return binding(&b.RoleRef, b.Subjects, false)
	}
	s.ValidateChange = func(_ context.Context, b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
		errs := binding(&b.RoleRef, b.Subjects, false)
		return append(errs, validation.Immutable(b.RoleRef, old.RoleRef, field.NewPath("roleRef"))...)
	}
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
