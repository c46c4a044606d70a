package core

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
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
			errs = append(errs, field.Forbidden(at.Child("persistentvolumesource"),
				fmt.Sprintf("spec.persistentvolumesource is immutable after creation\n%v", diff.Diff(old.Spec.PersistentVolumeSource, pv.Spec.PersistentVolumeSource))))
		}
		errs = append(errs, validation.Immutable(pv.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
		if old.Spec.NodeAffinity != nil && !validation.Equal(pv.Spec.NodeAffinity, graduated(pv.Spec.NodeAffinity, old.Spec.NodeAffinity)) {
			errs = append(errs, field.Invalid(field.NewPath("nodeAffinity"), pv.Spec.NodeAffinity, validation.ImmutableError+", except for updating from beta label to GA"))
		}
		if old.Spec.VolumeAttributesClassName != nil && pv.Spec.VolumeAttributesClassName == nil {
			errs = append(errs, field.Forbidden(at.Child("volumeAttributesClassName"), "update from non-nil value to nil is forbidden"))
		}
		return errs
	}
	s.WarningsFunc = persistentVolumeWarnings
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

// sameVolumeSource ignores the secret for expansion of CSI, which may be set later.
func sameVolumeSource(source, old *corev1.PersistentVolumeSource) bool {
	if source.CSI == nil || old.CSI == nil || old.CSI.ControllerExpandSecretRef != nil {
		return validation.Equal(source, old)
	}
	now, csi := *source, *source.CSI
	csi.ControllerExpandSecretRef = nil
	now.CSI = &csi
	return validation.Equal(&now, old)
}

// gaLabels are the labels of nodes by the names that they had before.
var gaLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
}

// graduated returns old with those labels renamed that are named in their new form
// at the same place of now.
func graduated(now, old *corev1.VolumeNodeAffinity) *corev1.VolumeNodeAffinity {
	if now == nil || now.Required == nil || old.Required == nil || len(now.Required.NodeSelectorTerms) != len(old.Required.NodeSelectorTerms) {
		return old
	}
	out := old.DeepCopy()
	for i, term := range now.Required.NodeSelectorTerms {
		before := out.Required.NodeSelectorTerms[i]
		for _, pair := range [][2][]corev1.NodeSelectorRequirement{{term.MatchExpressions, before.MatchExpressions}, {term.MatchFields, before.MatchFields}} {
			for j := range min(len(pair[0]), len(pair[1])) {
				if key := pair[0][j].Key; gaLabels[pair[1][j].Key] == key { // none is the new name of any that has none: upstream's map says so
					pair[1][j].Key = key
				}
			}
		}
	}
	return out
}

func persistentVolumeWarnings(_ context.Context, pv, _ *corev1.PersistentVolume) []string {
	list, s := classAnnotationWarnings(pv.Annotations, true), &pv.Spec
	if s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		list = append(list, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if s.NodeAffinity != nil && s.NodeAffinity.Required != nil {
		for i := range s.NodeAffinity.Required.NodeSelectorTerms {
			at := field.NewPath("spec", "nodeAffinity", "required", "nodeSelectorTerms").Index(i)
			list = append(list, validation.NodeSelectorTermWarnings(&s.NodeAffinity.Required.NodeSelectorTerms[i], false, at)...)
		}
	}
	for _, kind := range []struct {
		present bool
		text    string
	}{
		{s.CephFS != nil, "cephfs: deprecated in v1.28, non-functional in v1.31+"},
		{s.PhotonPersistentDisk != nil, "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"},
		{s.ScaleIO != nil, "scaleIO: deprecated in v1.16, non-functional in v1.22+"},
		{s.StorageOS != nil, "storageOS: deprecated in v1.22, non-functional in v1.25+"},
		{s.Glusterfs != nil, "glusterfs: deprecated in v1.25, non-functional in v1.26+"},
		{s.RBD != nil, "rbd: deprecated in v1.28, non-functional in v1.31+"},
	} {
		if kind.present {
			list = append(list, "spec."+kind.text)
		}
	}
	return list
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
