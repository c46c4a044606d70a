package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var persistentVolumeHalves = kind.Split(func(obj *corev1.PersistentVolume) (*corev1.PersistentVolumeSpec, *corev1.PersistentVolumeStatus) {
	return &obj.Spec, &obj.Status
})

func persistentVolumes() *registry.Resource {
	s := persistentVolumeHalves.MainWithoutGeneration()
	return &registry.Resource{
		GVR:        version.WithResource("persistentvolumes"),
		Kind:       "PersistentVolume",
		Singular:   "persistentvolume",
		ShortNames: []string{"pv"},
		New:        kind.Make[corev1.PersistentVolume],
		NewList:    kind.Make[corev1.PersistentVolumeList],
		Strategy:   s,
		Status:     persistentVolumeHalves.Status(),
	}
}
