package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func podTemplates() *registry.Resource {
	s := kind.Counted(func(obj *corev1.PodTemplate) *corev1.PodTemplateSpec { return &obj.Template })
	s.DefaultFunc = func(obj *corev1.PodTemplate) { defaults.PodTemplate(&obj.Template) }
	s.ValidateCreate = func(_ context.Context, obj *corev1.PodTemplate) field.ErrorList {
		return validation.PodTemplate(&obj.Template, nil, field.NewPath("template"))
	}
	s.ValidateChange = func(_ context.Context, obj, old *corev1.PodTemplate) field.ErrorList {
		return validation.PodTemplate(&obj.Template, &old.Template, field.NewPath("template"))
	}
	s.WarningsFunc = func(_ context.Context, obj, old *corev1.PodTemplate) []string {
		if old != nil && old.Generation == obj.Generation {
			return nil
		}
		return validation.TemplateWarnings(&obj.Template, field.NewPath("template"))
	}
	return &registry.Resource{
		GVR:        version.WithResource("podtemplates"),
		Kind:       "PodTemplate",
		Singular:   "podtemplate",
		Namespaced: true,
		New:        kind.Make[corev1.PodTemplate],
		NewList:    kind.Make[corev1.PodTemplateList],
		Strategy:   s,
	}
}
