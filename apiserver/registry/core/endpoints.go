package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func endpoints() *registry.Resource {
	s := registry.Funcs[*corev1.Endpoints]{}
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:           version.WithResource("endpoints"),
		Kind:          "Endpoints",
		Singular:      "endpoints",
		ShortNames:    []string{"ep"},
		Namespaced:    true,
		New:           kind.Make[corev1.Endpoints],
		NewList:       kind.Make[corev1.EndpointsList],
		StoragePrefix: "services/endpoints",
		Strategy:      s,
	}
}
