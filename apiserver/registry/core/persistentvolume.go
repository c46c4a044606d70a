package core

import (
	"context"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var persistentVolumeHalves = kind.Split(func(obj *corev1.PersistentVolume) (*corev1.PersistentVolumeSpec, *corev1.PersistentVolumeStatus) {
	return &obj.Spec, &obj.Status
})

func persistentVolumes() *registry.Resource {
	s := persistentVolumeHalves.MainWithoutGeneration()
	s.DefaultFunc = defaultPersistentVolume
	s.PrepareCreate = func(_ context.Context, pv *corev1.PersistentVolume) {
		now := metav1.Now()
		pv.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumePending, LastPhaseTransitionTime: &now}
	}
	at := field.NewPath("spec")
	s.ValidateCreate = func(_ context.Context, pv *corev1.PersistentVolume) field.ErrorList {
		return validation.PersistentVolumeSpec(&pv.Spec, pv.Name, at)
	}
	s.ValidateChange = func(_ context.Context, pv, old *corev1.PersistentVolume) field.ErrorList {
		errs := validation.PersistentVolumeSpec(&pv.Spec, pv.Name, at)
		if !sameVolumeSource(&pv.Spec.PersistentVolumeSource, &old.Spec.PersistentVolumeSource) {
			errs = append(errs, field.Forbidden(at.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))
		}
		errs = append(errs, validation.Immutable(pv.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
		if old.Spec.NodeAffinity != nil && !validation.Equal(pv.Spec.NodeAffinity, old.Spec.NodeAffinity) {
			errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), pv.Spec.NodeAffinity, validation.ImmutableError+", except for updating from beta label to GA"))
		}
		return errs
	}
	status := persistentVolumeHalves.Status()
	status.DefaultFunc = defaultPersistentVolume
	status.PrepareUpdate = func(_ context.Context, pv, old *corev1.PersistentVolume) {
		pv.Spec = old.Spec
		stampPhase(&pv.Status, &old.Status)
	}
	return &registry.Resource{
		GVR:              version.WithResource("persistentvolumes"),
		Kind:             "PersistentVolume",
		Singular:         "persistentvolume",
		ShortNames:       []string{"pv"},
		New:              kind.Make[corev1.PersistentVolume],
		NewList:          kind.Make[corev1.PersistentVolumeList],
		Strategy:         s,
		Status:           status,
		SelectableFields: []string{"name"},
		Fields:           func(obj runtime.Object) fields.Set { return fields.Set{"name": obj.(*corev1.PersistentVolume).Name} },
	}
}

func defaultPersistentVolume(pv *corev1.PersistentVolume) {
	defaults.Resources(pv.Spec.Capacity)
	defaults.PersistentVolumeSource(&pv.Spec.PersistentVolumeSource)
	if pv.Status.Phase == "" {
		pv.Status.Phase = corev1.VolumePending
	}
	if pv.Spec.PersistentVolumeReclaimPolicy == "" {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if pv.Spec.VolumeMode == nil {
		mode := corev1.PersistentVolumeFilesystem
		pv.Spec.VolumeMode = &mode
	}
}

// sameVolumeSource ignores the secret references of CSI that may be set later.
func sameVolumeSource(source, old *corev1.PersistentVolumeSource) bool {
	if source.CSI == nil || old.CSI == nil {
		return validation.Equal(source, old)
	}
	now, before := *source.CSI, *old.CSI
	for _, ref := range []struct{ now, before **corev1.SecretReference }{
		{&now.ControllerExpandSecretRef, &before.ControllerExpandSecretRef},
		{&now.NodeExpandSecretRef, &before.NodeExpandSecretRef},
	} {
		if *ref.before == nil {
			*ref.now = nil
		}
	}
	return validation.Equal(now, before)
}

// stampPhase notes when the phase changed.
func stampPhase(status, old *corev1.PersistentVolumeStatus) {
	switch {
	case status.Phase == old.Phase:
		if status.LastPhaseTransitionTime == nil {
			status.LastPhaseTransitionTime = old.LastPhaseTransitionTime
		}
	case status.LastPhaseTransitionTime == nil || status.LastPhaseTransitionTime.Equal(old.LastPhaseTransitionTime):
		now := metav1.Now()
		status.LastPhaseTransitionTime = &now
	}
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func copyLabels(in map[string]string) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	maps.Copy(out, in)
	return out
}
