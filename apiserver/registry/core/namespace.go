package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var namespaceHalves = kind.Split(func(obj *corev1.Namespace) (*corev1.NamespaceSpec, *corev1.NamespaceStatus) {
	return &obj.Spec, &obj.Status
})

func namespaces() *registry.Resource {
	s := namespaceHalves.MainWithoutGeneration()
	s.Name = apivalidation.ValidateNamespaceName
	return &registry.Resource{
		GVR:        version.WithResource("namespaces"),
		Kind:       "Namespace",
		Singular:   "namespace",
		ShortNames: []string{"ns"},
		New:        kind.Make[corev1.Namespace],
		NewList:    kind.Make[corev1.NamespaceList],
		Strategy:   s,
		Status:     namespaceHalves.Status(),
	}
}
