package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func events() *registry.Resource {
	s := registry.Funcs[*corev1.Event]{}
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("events"),
		Kind:       "Event",
		Singular:   "event",
		ShortNames: []string{"ev"},
		Namespaced: true,
		New:        kind.Make[corev1.Event],
		NewList:    kind.Make[corev1.EventList],
		Strategy:   s,
		Also:       []registry.Served{servedEventsV1()},
	}
}
