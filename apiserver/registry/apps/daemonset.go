package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var daemonSetHalves = kind.Split(func(obj *appsv1.DaemonSet) (*appsv1.DaemonSetSpec, *appsv1.DaemonSetStatus) {
	return &obj.Spec, &obj.Status
})

func daemonSets() *registry.Resource {
	s := daemonSetHalves.Main()
	return &registry.Resource{
		GVR:        version.WithResource("daemonsets"),
		Kind:       "DaemonSet",
		Singular:   "daemonset",
		ShortNames: []string{"ds"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.DaemonSet],
		NewList:    kind.Make[appsv1.DaemonSetList],
		Strategy:   s,
		Status:     daemonSetHalves.Status(),
	}
}
