package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var statefulSetHalves = kind.Split(func(obj *appsv1.StatefulSet) (*appsv1.StatefulSetSpec, *appsv1.StatefulSetStatus) {
	return &obj.Spec, &obj.Status
})

func statefulSets() *registry.Resource {
	s := statefulSetHalves.Main()
	s.Name = apivalidation.NameIsDNSLabel
	return &registry.Resource{
		GVR:        version.WithResource("statefulsets"),
		Kind:       "StatefulSet",
		Singular:   "statefulset",
		ShortNames: []string{"sts"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.StatefulSet],
		NewList:    kind.Make[appsv1.StatefulSetList],
		Strategy:   s,
		Status:     statefulSetHalves.Status(),
		Scale: kind.ReplicasOf[*appsv1.StatefulSet](func(obj *appsv1.StatefulSet) (**int32, int32, string, error) {
			selector, err := metav1.LabelSelectorAsSelector(obj.Spec.Selector)
			if err != nil {
				return nil, 0, "", err
			}
			return &obj.Spec.Replicas, obj.Status.Replicas, selector.String(), nil
		}).Scale(),
	}
}
