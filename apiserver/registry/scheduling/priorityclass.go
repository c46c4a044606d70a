package scheduling

import (
	"context"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func priorityClasses() *registry.Resource {
	s := registry.Funcs[*schedulingv1.PriorityClass]{PrepareCreate: func(_ context.Context, obj *schedulingv1.PriorityClass) { obj.Generation = 1 }}
	return &registry.Resource{
		GVR:        version.WithResource("priorityclasses"),
		Kind:       "PriorityClass",
		Singular:   "priorityclass",
		ShortNames: []string{"pc"},
		New:        kind.Make[schedulingv1.PriorityClass],
		NewList:    kind.Make[schedulingv1.PriorityClassList],
		Strategy:   s,
	}
}
