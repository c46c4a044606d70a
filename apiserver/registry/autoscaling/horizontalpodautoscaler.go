package autoscaling

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var horizontalPodAutoscalerHalves = kind.Split(func(obj *autoscalingv2.HorizontalPodAutoscaler) (*autoscalingv2.HorizontalPodAutoscalerSpec, *autoscalingv2.HorizontalPodAutoscalerStatus) {
	return &obj.Spec, &obj.Status
})

func horizontalPodAutoscalers() *registry.Resource {
	s := horizontalPodAutoscalerHalves.Main()
	s.DefaultFunc = defaultAutoscaler
	s.ValidateCreate = func(_ context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
		return autoscalerSpec(&hpa.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, hpa, old *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
		return autoscalerSpec(&hpa.Spec, &old.Spec)
	}
	status := horizontalPodAutoscalerHalves.Status()
	status.ValidateChange = func(_ context.Context, hpa, _ *autoscalingv2.HorizontalPodAutoscaler) field.ErrorList {
		return autoscalerStatus(&hpa.Status)
	}
	return &registry.Resource{
		GVR:        version.WithResource("horizontalpodautoscalers"),
		Kind:       "HorizontalPodAutoscaler",
		Singular:   "horizontalpodautoscaler",
		ShortNames: []string{"hpa"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[autoscalingv2.HorizontalPodAutoscaler],
		NewList:    kind.Make[autoscalingv2.HorizontalPodAutoscalerList],
		Strategy:   s,
		Status:     status,
		Also:       []registry.Served{servedV1()},
	}
}
