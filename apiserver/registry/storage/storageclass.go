package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func storageClasses() *registry.Resource {
	s := registry.Funcs[*storagev1.StorageClass]{}
	return &registry.Resource{
		GVR:        version.WithResource("storageclasses"),
		Kind:       "StorageClass",
		Singular:   "storageclass",
		ShortNames: []string{"sc"},
		New:        kind.Make[storagev1.StorageClass],
		NewList:    kind.Make[storagev1.StorageClassList],
		Strategy:   s,
	}
}
