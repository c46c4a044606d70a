package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var replicationControllerHalves = kind.Split(func(obj *corev1.ReplicationController) (*corev1.ReplicationControllerSpec, *corev1.ReplicationControllerStatus) {
	return &obj.Spec, &obj.Status
})

func replicationControllers() *registry.Resource {
	s := replicationControllerHalves.Main()
	return &registry.Resource{
		GVR:           version.WithResource("replicationcontrollers"),
		Kind:          "ReplicationController",
		Singular:      "replicationcontroller",
		ShortNames:    []string{"rc"},
		Categories:    []string{"all"},
		Namespaced:    true,
		New:           kind.Make[corev1.ReplicationController],
		NewList:       kind.Make[corev1.ReplicationControllerList],
		StoragePrefix: "controllers",
		Strategy:      s,
		Status:        replicationControllerHalves.Status(),
		Scale: kind.ReplicasOf[*corev1.ReplicationController](func(obj *corev1.ReplicationController) (**int32, int32, string, error) {
			return &obj.Spec.Replicas, obj.Status.Replicas, labels.SelectorFromSet(obj.Spec.Selector).String(), nil
		}).Scale(),
	}
}
