package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func limitRanges() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("limitranges"),
		Kind:       "LimitRange",
		Singular:   "limitrange",
		ShortNames: []string{"limits"},
		Namespaced: true,
		New:        kind.Make[corev1.LimitRange],
		NewList:    kind.Make[corev1.LimitRangeList],
		Strategy: registry.Funcs[*corev1.LimitRange]{
			DefaultFunc: func(obj *corev1.LimitRange) {
				for i := range obj.Spec.Limits {
					defaultLimit(&obj.Spec.Limits[i])
				}
			},
			PrepareCreate: func(_ context.Context, obj *corev1.LimitRange) {
				if obj.Name == "" {
					obj.Name = string(uuid.NewUUID())
				}
			},
			ValidateCreate: func(_ context.Context, obj *corev1.LimitRange) field.ErrorList { return limitRangeSpec(&obj.Spec) },
			ValidateChange: func(_ context.Context, obj, _ *corev1.LimitRange) field.ErrorList { return limitRangeSpec(&obj.Spec) },
			Fixed:          registry.Traits{CreateOnUpdate: true},
		},
	}
}

// defaultLimit fills the defaults of containers: a limit from the maximum, a
// request from the limit, else from the minimum.
func defaultLimit(item *corev1.LimitRangeItem) {
	for _, list := range []corev1.ResourceList{item.Max, item.Min, item.Default, item.DefaultRequest, item.MaxLimitRequestRatio} {
		defaults.Resources(list)
	}
	if item.Type != corev1.LimitTypeContainer {
		return
	}
	fill := func(into *corev1.ResourceList, from corev1.ResourceList) {
		if *into == nil {
			*into = corev1.ResourceList{}
		}
		for name, quantity := range from {
			if _, ok := (*into)[name]; !ok {
				(*into)[name] = quantity.DeepCopy()
			}
		}
	}
	fill(&item.Default, item.Max)
	fill(&item.DefaultRequest, item.Default)
	fill(&item.DefaultRequest, item.Min)
}
