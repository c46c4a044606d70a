package persistentvolume

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/volume"
)

func (r *reconciler) syncClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBindCompleted) {
		return r.syncBound(ctx, claim)
	}
	claim, err := r.withDefaultClass(ctx, claim)
	if err != nil {
		return err
	}
	if claim.Spec.VolumeName != "" {
		return r.syncNamed(ctx, claim)
	}
	late, err := volume.IsDelayBindingMode(claim, r.classes)
	if err != nil {
		return err
	}
	pv, err := r.match(claim, late)
	switch {
	case err != nil:
		return err
	case pv != nil:
		return r.bind(ctx, pv, claim)
	case claim.DeletionTimestamp != nil:
		return nil
	case late && !volume.IsDelayBindingProvisioning(claim):
		r.Recorder.Event(claim, corev1.EventTypeNormal, "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
		if _, told := r.waiting.LoadOrStore(claim.UID, true); !told {
			r.Span("waits for first consumer", "PersistentVolumeClaim", claim, time.Now(), "class", volume.GetPersistentVolumeClaimClass(claim))
		}
	case volume.GetPersistentVolumeClaimClass(claim) != "":
		if err := r.provision(ctx, claim); err != nil {
			return err
		}
	default:
		r.Recorder.Event(claim, corev1.EventTypeNormal, "FailedBinding", "no persistent volumes available for this claim and no storage class is set")
	}
	return r.claimPhase(ctx, claim, corev1.ClaimPending, nil)
}

// withDefaultClass gives a claim that names no class the default one, which may
// be younger than the claim (KEP-3333).
func (r *reconciler) withDefaultClass(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	if volume.PersistentVolumeClaimHasClass(claim) || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return claim, nil
	}
	class, err := r.defaultClass()
	if err != nil || class == nil {
		return claim, err
	}
	out := claim.DeepCopy()
	out.Spec.StorageClassName = &class.Name
	return r.Client.CoreV1().PersistentVolumeClaims(out.Namespace).Update(ctx, out, metav1.UpdateOptions{})
}

// defaultClass is the newest of those that are marked.
func (r *reconciler) defaultClass() (*storagev1.StorageClass, error) {
	list, err := r.classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c *storagev1.StorageClass) bool { return c.Annotations[defaultClass] != "true" })
	if len(list) == 0 {
		return nil, nil
	}
	return slices.MaxFunc(list, func(a, b *storagev1.StorageClass) int {
		if n := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); n != 0 {
			return n
		}
		return -cmp.Compare(a.Name, b.Name)
	}), nil
}

// match finds the smallest volume that fits, or the one that was made for the claim.
func (r *reconciler) match(claim *corev1.PersistentVolumeClaim, late bool) (*corev1.PersistentVolume, error) {
	all, err := r.volumes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var fit []*corev1.PersistentVolume
	for _, pv := range all {
		if volume.CheckAccessModes(claim, pv) || pv.Spec.ClaimRef != nil && volume.IsVolumeBoundToClaim(pv, claim) {
			fit = append(fit, pv)
		}
	}
	return volume.FindMatchingVolume(claim, fit, nil, nil, late, true)
}

// syncNamed brings a claim on that asks for a certain volume.
func (r *reconciler) syncNamed(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	pv, err := r.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return r.claimPhase(ctx, claim, corev1.ClaimPending, nil) // it may come yet
	}
	if err != nil {
		return err
	}
	switch {
	case pv.Spec.ClaimRef == nil:
		if problem := mismatch(pv, claim); problem != "" {
			r.Recorder.Eventf(claim, corev1.EventTypeWarning, "VolumeMismatch", "Cannot bind to requested volume %q: %s", pv.Name, problem)
			return r.claimPhase(ctx, claim, corev1.ClaimPending, nil)
		}
		return r.bind(ctx, pv, claim)
	case volume.IsVolumeBoundToClaim(pv, claim):
		return r.bind(ctx, pv, claim)
	case !metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBoundByController):
		r.Recorder.Eventf(claim, corev1.EventTypeWarning, "FailedBinding", "volume %q already bound to a different claim.", pv.Name)
		return r.claimPhase(ctx, claim, corev1.ClaimPending, nil)
	}
	r.Recorder.Eventf(claim, corev1.EventTypeWarning, "FailedBinding", "volume %q already bound to a different claim.", pv.Name)
	return fmt.Errorf("invalid binding of claim %q to volume %q: volume already claimed by %q", claim.Namespace+"/"+claim.Name, pv.Name, pv.Spec.ClaimRef.Namespace+"/"+pv.Spec.ClaimRef.Name)
}

// mismatch says why a volume that was asked for by name cannot serve.
func mismatch(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	have, want := pv.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	var attributes string
	if claim.Spec.VolumeAttributesClassName != nil {
		attributes = *claim.Spec.VolumeAttributesClassName
	}
	var ofVolume string
	if pv.Spec.VolumeAttributesClassName != nil {
		ofVolume = *pv.Spec.VolumeAttributesClassName
	}
	switch {
	case have.Cmp(want) < 0:
		return "requested PV is too small"
	case volume.GetPersistentVolumeClass(pv) != volume.GetPersistentVolumeClaimClass(claim):
		return "storageClassName does not match"
	case attributes != ofVolume:
		return "volumeAttributesClassName does not match"
	case volume.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec):
		return "incompatible volumeMode"
	case !volume.CheckAccessModes(claim, pv):
		return "incompatible accessMode"
	}
	return ""
}

// syncBound checks that a bound claim still has its volume.
func (r *reconciler) syncBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	lost := func(reason, message string) error {
		if claim.Status.Phase == corev1.ClaimLost {
			return nil
		}
		if err := r.claimPhase(ctx, claim, corev1.ClaimLost, nil); err != nil {
			return err
		}
		r.Recorder.Event(claim, corev1.EventTypeWarning, reason, message)
		return nil
	}
	if claim.Spec.VolumeName == "" {
		return lost("ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")
	}
	pv, err := r.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		// The cache of volumes may be behind that of claims.
		pv, err = r.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return lost("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
	case err != nil:
		return err
	case pv.Spec.ClaimRef == nil, pv.Spec.ClaimRef.UID == claim.UID:
		return r.bind(ctx, pv, claim)
	}
	return lost("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
}

// claimPhase writes a claim's phase; pv gives size and modes of a bound one.
func (r *reconciler) claimPhase(ctx context.Context, claim *corev1.PersistentVolumeClaim, phase corev1.PersistentVolumeClaimPhase, pv *corev1.PersistentVolume) error {
	out := claim.DeepCopy()
	out.Status.Phase = phase
	if pv == nil {
		out.Status.AccessModes, out.Status.Capacity = nil, nil
	} else {
		out.Status.AccessModes = pv.Spec.AccessModes
		// Later it is the resizer's: the volume grows before the file system does.
		if claim.Status.Phase != corev1.ClaimBound || out.Status.Capacity == nil {
			out.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: pv.Spec.Capacity[corev1.ResourceStorage]}
		}
		if out.Status.CurrentVolumeAttributesClassName == nil && claim.Status.Phase == corev1.ClaimPending {
			out.Status.CurrentVolumeAttributesClassName = pv.Spec.VolumeAttributesClassName
		}
	}
	if claimStatusEqual(&claim.Status, &out.Status) {
		return nil
	}
	_, err := r.Client.CoreV1().PersistentVolumeClaims(out.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return err
}

func claimStatusEqual(a, b *corev1.PersistentVolumeClaimStatus) bool {
	size, other := a.Capacity[corev1.ResourceStorage], b.Capacity[corev1.ResourceStorage]
	return a.Phase == b.Phase && slices.Equal(a.AccessModes, b.AccessModes) && len(a.Capacity) == len(b.Capacity) && size.Cmp(other) == 0
}
