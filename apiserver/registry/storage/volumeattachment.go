package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var volumeAttachmentHalves = kind.Split(func(obj *storagev1.VolumeAttachment) (*storagev1.VolumeAttachmentSpec, *storagev1.VolumeAttachmentStatus) {
	return &obj.Spec, &obj.Status
})

func volumeAttachments() *registry.Resource {
	s := volumeAttachmentHalves.MainWithoutGeneration()
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("volumeattachments"),
		Kind:     "VolumeAttachment",
		Singular: "volumeattachment",
		New:      kind.Make[storagev1.VolumeAttachment],
		NewList:  kind.Make[storagev1.VolumeAttachmentList],
		Strategy: s,
		Status:   volumeAttachmentHalves.StatusKeepingMeta(),
	}
}
