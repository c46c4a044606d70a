package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func csiStorageCapacities() *registry.Resource {
	s := registry.Funcs[*storagev1.CSIStorageCapacity]{}
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("csistoragecapacities"),
		Kind:       "CSIStorageCapacity",
		Singular:   "csistoragecapacity",
		Namespaced: true,
		New:        kind.Make[storagev1.CSIStorageCapacity],
		NewList:    kind.Make[storagev1.CSIStorageCapacityList],
		Strategy:   s,
	}
}
