package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func csiDrivers() *registry.Resource {
	s := kind.Counted(func(obj *storagev1.CSIDriver) *storagev1.CSIDriverSpec { return &obj.Spec })
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("csidrivers"),
		Kind:     "CSIDriver",
		Singular: "csidriver",
		New:      kind.Make[storagev1.CSIDriver],
		NewList:  kind.Make[storagev1.CSIDriverList],
		Strategy: s,
	}
}
