package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func podTemplates() *registry.Resource {
	s := kind.Counted(func(obj *corev1.PodTemplate) *corev1.PodTemplateSpec { return &obj.Template })
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
