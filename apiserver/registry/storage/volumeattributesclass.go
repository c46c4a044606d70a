package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func volumeAttributesClasses() *registry.Resource {
	s := registry.Funcs[*storagev1.VolumeAttributesClass]{}
	return &registry.Resource{
		GVR:        version.WithResource("volumeattributesclasses"),
		Kind:       "VolumeAttributesClass",
		Singular:   "volumeattributesclass",
		ShortNames: []string{"vac"},
		New:        kind.Make[storagev1.VolumeAttributesClass],
		NewList:    kind.Make[storagev1.VolumeAttributesClassList],
		Strategy:   s,
	}
}
