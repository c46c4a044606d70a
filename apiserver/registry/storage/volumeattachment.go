package storage

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var volumeAttachmentHalves = kind.Split(func(obj *storagev1.VolumeAttachment) (*storagev1.VolumeAttachmentSpec, *storagev1.VolumeAttachmentStatus) {
	return &obj.Spec, &obj.Status
})

func volumeAttachments() *registry.Resource {
	s := volumeAttachmentHalves.MainWithoutGeneration()
	s.ValidateCreate, s.ValidateChange = validateVolumeAttachment, validateVolumeAttachmentUpdate
	s.Fixed.NoUnconditionalUpdate = true
	status := volumeAttachmentHalves.StatusKeepingMeta()
	status.ValidateChange = func(_ context.Context, va, _ *storagev1.VolumeAttachment) field.ErrorList {
		return attachmentStatus(&va.Status)
	}
	return &registry.Resource{
		GVR:      version.WithResource("volumeattachments"),
		Kind:     "VolumeAttachment",
		Singular: "volumeattachment",
		New:      kind.Make[storagev1.VolumeAttachment],
		NewList:  kind.Make[storagev1.VolumeAttachmentList],
		Strategy: s,
		Status:   status,
	}
}
