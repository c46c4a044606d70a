package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var persistentVolumeClaimHalves = kind.Split(func(obj *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaimSpec, *corev1.PersistentVolumeClaimStatus) {
	return &obj.Spec, &obj.Status
})

func persistentVolumeClaims() *registry.Resource {
	s := registry.Funcs[*corev1.PersistentVolumeClaim]{
		DefaultFunc: defaultClaim,
		PrepareCreate: func(_ context.Context, claim *corev1.PersistentVolumeClaim) {
			claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			keepDataSources(&claim.Spec, nil)
			syncDataSources(&claim.Spec)
		},
		PrepareUpdate: func(_ context.Context, claim, old *corev1.PersistentVolumeClaim) {
			claim.Status = old.Status
			keepDataSources(&claim.Spec, &old.Spec)
			syncDataSources(&claim.Spec)
		},
		ValidateCreate: func(_ context.Context, claim *corev1.PersistentVolumeClaim) field.ErrorList {
			return validation.ClaimSpec(&claim.Spec, nil, field.NewPath("spec"))
		},
		ValidateChange: func(_ context.Context, claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
			return claimUpdate(claim, old)
		},
	}
	s.WarningsFunc = func(_ context.Context, claim, _ *corev1.PersistentVolumeClaim) []string {
		return append(classAnnotationWarnings(claim.Annotations, false), validation.ClaimSpecWarnings(&claim.Spec, field.NewPath("spec"))...)
	}
	status := persistentVolumeClaimHalves.Status()
	status.DefaultFunc = defaultClaim
	status.PrepareUpdate = func(_ context.Context, claim, old *corev1.PersistentVolumeClaim) {
		claim.Spec = old.Spec
		if old.Status.HealthStatus == nil {
			claim.Status.HealthStatus = nil // KEP-1432, off
		}
	}
	status.ValidateChange = func(_ context.Context, claim, _ *corev1.PersistentVolumeClaim) field.ErrorList {
		return validation.ClaimStatus(claim)
	}
	return &registry.Resource{
		GVR:              version.WithResource("persistentvolumeclaims"),
		Kind:             "PersistentVolumeClaim",
		Singular:         "persistentvolumeclaim",
		ShortNames:       []string{"pvc"},
		Namespaced:       true,
		New:              kind.Make[corev1.PersistentVolumeClaim],
		NewList:          kind.Make[corev1.PersistentVolumeClaimList],
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"name"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"name": obj.(*corev1.PersistentVolumeClaim).Name}
		},
	}
}

func defaultClaim(claim *corev1.PersistentVolumeClaim) {
	defaults.ClaimSpec(&claim.Spec)
	defaults.Resources(claim.Status.Capacity)
	defaults.Resources(claim.Status.AllocatedResources)
	if claim.Status.Phase == "" {
		claim.Status.Phase = corev1.ClaimPending
	}
}

// keepDataSources drops what a new claim cannot have as source: with dataSource
// alone anything but claims and snapshots, and what is in other namespaces (alpha, off).
func keepDataSources(spec, old *corev1.PersistentVolumeClaimSpec) {
	if r := spec.DataSourceRef; r != nil && r.Namespace != nil && *r.Namespace != "" && (old == nil || old.DataSourceRef == nil) {
		spec.DataSourceRef = nil
	}
	s := spec.DataSource
	if s == nil || spec.DataSourceRef != nil || old != nil && (old.DataSource != nil || old.DataSourceRef != nil) {
		return
	}
	group := ""
	if s.APIGroup != nil {
		group = *s.APIGroup
	}
	claim, snapshot := s.Kind == "PersistentVolumeClaim" && group == "", s.Kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"
	if !claim && !snapshot {
		spec.DataSource = nil
	}
}

// syncDataSources copies dataSource and dataSourceRef to one another where only
// one is set.
func syncDataSources(spec *corev1.PersistentVolumeClaimSpec) {
	switch {
	case spec.DataSource != nil && spec.DataSourceRef == nil:
		s := spec.DataSource
		spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: s.APIGroup, Kind: s.Kind, Name: s.Name}
	case spec.DataSource == nil && spec.DataSourceRef != nil && (spec.DataSourceRef.Namespace == nil || *spec.DataSourceRef.Namespace == ""):
		r := spec.DataSourceRef
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: r.APIGroup, Kind: r.Kind, Name: r.Name}
	}
}

// claimUpdate allows the volume's name to be set once, a class to be named where
// there was none, and a bound claim to grow or change its attributes.
func claimUpdate(claim, old *corev1.PersistentVolumeClaim) field.ErrorList {
	at := field.NewPath("spec")
	errs := validation.ClaimSpec(&claim.Spec, &old.Spec, at)
	now, before := claim.Spec.DeepCopy(), old.Spec.DeepCopy()
	syncDataSources(before)
	if before.VolumeName == "" {
		before.VolumeName = now.VolumeName
	}
	annotated, had := old.Annotations[corev1.BetaStorageClassAnnotation]
	value, has := claim.Annotations[corev1.BetaStorageClassAnnotation]
	named := now.StorageClassName != nil && before.StorageClassName == nil && (!had || *now.StorageClassName == annotated)
	// An annotation may become the field.
	if !(had && named && (!has || value == annotated)) && value != annotated {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations", corev1.BetaStorageClassAnnotation), value, validation.ImmutableError))
	}
	if named {
		now.StorageClassName = nil
	}
	if claim.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = before.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = before.VolumeAttributesClassName
	}
	if !validation.Equal(now, before) {
		errs = append(errs, field.Forbidden(at, fmt.Sprintf("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n%v", diff.Diff(before, now))))
	}
	size, oldSize, capacity := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	if size.Cmp(oldSize) < 0 && size.Cmp(capacity) <= 0 {
		errs = append(errs, field.Forbidden(at.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	errs = append(errs, validation.Immutable(claim.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	if class := claim.Spec.VolumeAttributesClassName; !validation.Equal(class, old.Spec.VolumeAttributesClassName) && old.Status.CurrentVolumeAttributesClassName != nil {
		switch p := at.Child("volumeAttributesClassName"); {
		case class == nil:
			errs = append(errs, field.Forbidden(p, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
		case *class == "":
			errs = append(errs, field.Forbidden(p, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"))
		}
	}
	return errs
}

// classAnnotationWarnings are about the annotation that named the class before
// spec.storageClassName, and of volumes the one that held mount options.
func classAnnotationWarnings(annotations map[string]string, volume bool) (list []string) {
	say := func(key, text string) {
		if _, ok := annotations[key]; ok {
			list = append(list, "metadata.annotations["+key+"]: "+text)
		}
	}
	say(corev1.BetaStorageClassAnnotation, `deprecated since v1.8; use "storageClassName" attribute instead`)
	if volume {
		say(corev1.MountOptionAnnotation, `deprecated since v1.31; use "mountOptions" attribute instead`)
	}
	return list
}
