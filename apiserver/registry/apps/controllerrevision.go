package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func controllerRevisions() *registry.Resource {
	s := registry.Funcs[*appsv1.ControllerRevision]{}
	return &registry.Resource{
		GVR:        version.WithResource("controllerrevisions"),
		Kind:       "ControllerRevision",
		Singular:   "controllerrevision",
		Namespaced: true,
		New:        kind.Make[appsv1.ControllerRevision],
		NewList:    kind.Make[appsv1.ControllerRevisionList],
		Strategy:   s,
	}
}
