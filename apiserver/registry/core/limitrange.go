package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func limitRanges() *registry.Resource {
	s := registry.Funcs[*corev1.LimitRange]{}
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("limitranges"),
		Kind:       "LimitRange",
		Singular:   "limitrange",
		ShortNames: []string{"limits"},
		Namespaced: true,
		New:        kind.Make[corev1.LimitRange],
		NewList:    kind.Make[corev1.LimitRangeList],
		Strategy:   s,
	}
}
