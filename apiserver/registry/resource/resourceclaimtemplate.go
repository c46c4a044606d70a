package resource

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func resourceClaimTemplates(objects registry.Reader) *registry.Resource {
	s := registry.Funcs[*resourcev1.ResourceClaimTemplate]{}
	s.DefaultFunc = func(t *resourcev1.ResourceClaimTemplate) { defaultRequests(&t.Spec.Spec) }
	s.PrepareCreate = func(_ context.Context, t *resourcev1.ResourceClaimTemplate) { dropAlphaClaim(&t.Spec.Spec, nil) }
	s.PrepareUpdate = func(_ context.Context, t, old *resourcev1.ResourceClaimTemplate) {
		dropAlphaClaim(&t.Spec.Spec, &old.Spec.Spec)
	}
	valid := func(t *resourcev1.ResourceClaimTemplate) field.ErrorList {
		errs := validation.TemplateMeta(&t.Spec.ObjectMeta, field.NewPath("spec", "metadata"))
		return append(errs, claimSpec(&t.Spec.Spec, field.NewPath("spec", "spec"))...)
	}
	s.ValidateCreate = func(_ context.Context, t *resourcev1.ResourceClaimTemplate) field.ErrorList {
		return append(adminAccess(objects, t.Namespace, &t.Spec.Spec), valid(t)...)
	}
	s.ValidateChange = func(_ context.Context, t, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
		return append(valid(t), validation.Immutable(t.Spec, old.Spec, field.NewPath("spec"))...)
	}
	return &registry.Resource{
		GVR:        version.WithResource("resourceclaimtemplates"),
		Kind:       "ResourceClaimTemplate",
		Singular:   "resourceclaimtemplate",
		Namespaced: true,
		New:        kind.Make[resourcev1.ResourceClaimTemplate],
		NewList:    kind.Make[resourcev1.ResourceClaimTemplateList],
		Also:       olderResourceClaimTemplate(),
		Strategy:   s,
	}
}
