package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var replicaSetHalves = kind.Split(func(obj *appsv1.ReplicaSet) (*appsv1.ReplicaSetSpec, *appsv1.ReplicaSetStatus) {
	return &obj.Spec, &obj.Status
})

func replicaSets() *registry.Resource {
	s := replicaSetHalves.Main()
	return &registry.Resource{
		GVR:        version.WithResource("replicasets"),
		Kind:       "ReplicaSet",
		Singular:   "replicaset",
		ShortNames: []string{"rs"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.ReplicaSet],
		NewList:    kind.Make[appsv1.ReplicaSetList],
		Strategy:   s,
		Status:     replicaSetHalves.Status(),
		Scale: kind.ReplicasOf[*appsv1.ReplicaSet](func(obj *appsv1.ReplicaSet) (**int32, int32, string, error) {
			selector, err := metav1.LabelSelectorAsSelector(obj.Spec.Selector)
			if err != nil {
				return nil, 0, "", err
			}
			return &obj.Spec.Replicas, obj.Status.Replicas, selector.String(), nil
		}).Scale(),
	}
}
