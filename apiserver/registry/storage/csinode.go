package storage

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var csiNodeHalves = kind.Split(func(obj *storagev1.CSINode) (*storagev1.CSINodeSpec, *storagev1.CSINodeStatus) {
	return &obj.Spec, &obj.Status
})

func csiNodes() *registry.Resource {
	s := csiNodeHalves.MainWithoutGeneration()
	s.ValidateCreate, s.ValidateChange = validateCSINode, validateCSINodeUpdate
	s.Fixed.NoUnconditionalUpdate = true
	status := csiNodeHalves.StatusKeepingMeta()
	keep := status.PrepareUpdate
	status.PrepareUpdate = func(ctx context.Context, n, old *storagev1.CSINode) {
		keep(ctx, n, old)
		if len(old.Status.StorageHealth) == 0 {
			n.Status.StorageHealth = nil // KEP-1432, off
		}
	}
	return &registry.Resource{
		GVR:      version.WithResource("csinodes"),
		Kind:     "CSINode",
		Singular: "csinode",
		New:      kind.Make[storagev1.CSINode],
		NewList:  kind.Make[storagev1.CSINodeList],
		Strategy: s,
		Status:   status,
	}
}
