package storage

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func storageClasses() *registry.Resource {
	s := registry.Funcs[*storagev1.StorageClass]{}
	s.DefaultFunc = defaultStorageClass
	s.ValidateCreate = validateStorageClass
	s.ValidateChange = validateStorageClassUpdate
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

func defaultStorageClass(class *storagev1.StorageClass) {
	if class.ReclaimPolicy == nil {
		policy := corev1.PersistentVolumeReclaimDelete
		class.ReclaimPolicy = &policy
	}
	if class.VolumeBindingMode == nil {
		mode := storagev1.VolumeBindingImmediate
		class.VolumeBindingMode = &mode
	}
}

func validateStorageClass(_ context.Context, class *storagev1.StorageClass) field.ErrorList {
	const maxParameters, maxParameterBytes = 512, 256 << 10
	var errs field.ErrorList
	if at := field.NewPath("provisioner"); class.Provisioner == "" {
		errs = append(errs, field.Required(at, class.Provisioner))
	} else {
		errs = append(errs, validation.QualifiedName(strings.ToLower(class.Provisioner), at)...)
	}
	parameters, size := field.NewPath("parameters"), 0
	for key, value := range class.Parameters {
		if key == "" {
			errs = append(errs, field.Invalid(parameters, key, "field can not be empty."))
		}
		size += len(key) + len(value)
	}
	switch {
	case len(class.Parameters) > maxParameters:
		errs = append(errs, field.TooLong(parameters, "", maxParameters))
	case size > maxParameterBytes:
		errs = append(errs, field.TooLong(parameters, "", maxParameterBytes))
	}
	if p := class.ReclaimPolicy; p != nil && *p != "" && *p != corev1.PersistentVolumeReclaimDelete && *p != corev1.PersistentVolumeReclaimRetain {
		errs = append(errs, field.NotSupported(field.NewPath("reclaimPolicy"), p, []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain}))
	}
	if m := class.VolumeBindingMode; m != nil && *m != storagev1.VolumeBindingImmediate && *m != storagev1.VolumeBindingWaitForFirstConsumer {
		errs = append(errs, field.NotSupported(field.NewPath("volumeBindingMode"), *m, []storagev1.VolumeBindingMode{storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer}))
	}
	return errs
}

func validateStorageClassUpdate(_ context.Context, class, old *storagev1.StorageClass) field.ErrorList {
	errs := validation.Immutable(class.Parameters, old.Parameters, field.NewPath("parameters"))
	errs = append(errs, validation.Immutable(class.Provisioner, old.Provisioner, field.NewPath("provisioner"))...)
	errs = append(errs, validation.Immutable(class.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...)
	return append(errs, validation.Immutable(class.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
}
