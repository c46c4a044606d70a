package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func secrets() *registry.Resource {
	s := registry.Funcs[*corev1.Secret]{}
	return &registry.Resource{
		GVR:        version.WithResource("secrets"),
		Kind:       "Secret",
		Singular:   "secret",
		Namespaced: true,
		New:        kind.Make[corev1.Secret],
		NewList:    kind.Make[corev1.SecretList],
		Strategy:   s,
	}
}
