package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var persistentVolumeClaimHalves = kind.Split(func(obj *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaimSpec, *corev1.PersistentVolumeClaimStatus) {
	return &obj.Spec, &obj.Status
})

func persistentVolumeClaims() *registry.Resource {
	s := persistentVolumeClaimHalves.MainWithoutGeneration()
	return &registry.Resource{
		GVR:        version.WithResource("persistentvolumeclaims"),
		Kind:       "PersistentVolumeClaim",
		Singular:   "persistentvolumeclaim",
		ShortNames: []string{"pvc"},
		Namespaced: true,
		New:        kind.Make[corev1.PersistentVolumeClaim],
		NewList:    kind.Make[corev1.PersistentVolumeClaimList],
		Strategy:   s,
		Status:     persistentVolumeClaimHalves.Status(),
	}
}
