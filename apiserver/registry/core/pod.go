package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var podHalves = kind.Split(func(obj *corev1.Pod) (*corev1.PodSpec, *corev1.PodStatus) {
	return &obj.Spec, &obj.Status
})

func pods() *registry.Resource {
	s := podHalves.Main()
	return &registry.Resource{
		GVR:        version.WithResource("pods"),
		Kind:       "Pod",
		Singular:   "pod",
		ShortNames: []string{"po"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[corev1.Pod],
		NewList:    kind.Make[corev1.PodList],
		Strategy:   s,
		Status:     podHalves.Status(),
	}
}
