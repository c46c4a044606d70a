package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func configMaps() *registry.Resource {
	s := registry.Funcs[*corev1.ConfigMap]{}
	return &registry.Resource{
		GVR:        version.WithResource("configmaps"),
		Kind:       "ConfigMap",
		Singular:   "configmap",
		ShortNames: []string{"cm"},
		Namespaced: true,
		New:        kind.Make[corev1.ConfigMap],
		NewList:    kind.Make[corev1.ConfigMapList],
		Strategy:   s,
	}
}
