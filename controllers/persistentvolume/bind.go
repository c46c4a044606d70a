package persistentvolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// bind makes a volume and a claim refer to each other and says so in both. Each
// step is left out when it was done before.
func (r *reconciler) bind(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	start := time.Now()
	// 1. The volume is the claim's: from here nobody else can have it.
	bound, dirty, err := volume.GetBindVolumeToClaim(pv, claim)
	if err != nil {
		return err
	}
	if dirty {
		if bound, err = r.Client.CoreV1().PersistentVolumes().Update(ctx, bound, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("bind volume %s to claim %s/%s: %w", pv.Name, claim.Namespace, claim.Name, err)
		}
	}
	// 2. The volume says so.
	if bound, err = r.volumePhase(ctx, bound, corev1.VolumeBound, ""); err != nil {
		return err
	}
	// 3. The claim names the volume.
	named := claim
	if claim.Spec.VolumeName != bound.Name || !metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBindCompleted) {
		named = claim.DeepCopy()
		if claim.Spec.VolumeName != bound.Name {
			named.Spec.VolumeName = bound.Name
			metav1.SetMetaDataAnnotation(&named.ObjectMeta, volume.AnnBoundByController, "yes")
		}
		metav1.SetMetaDataAnnotation(&named.ObjectMeta, volume.AnnBindCompleted, "yes")
		if named, err = r.Client.CoreV1().PersistentVolumeClaims(named.Namespace).Update(ctx, named, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	// 4. The claim is bound.
	if err := r.claimPhase(ctx, named, corev1.ClaimBound, bound); err != nil {
		return err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		r.Span("claim bound", "PersistentVolumeClaim", claim, start, "volume", pv.Name)
	}
	return nil
}

// unbind takes the claim's mark off a volume: all of it where the controller had
// made it, only the UID where a person had.
func (r *reconciler) unbind(ctx context.Context, pv *corev1.PersistentVolume) error {
	out := pv.DeepCopy()
	if metav1.HasAnnotation(pv.ObjectMeta, volume.AnnBoundByController) {
		out.Spec.ClaimRef = nil
		delete(out.Annotations, volume.AnnBoundByController)
	} else {
		out.Spec.ClaimRef.UID = ""
	}
	out, err := r.Client.CoreV1().PersistentVolumes().Update(ctx, out, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	_, err = r.volumePhase(ctx, out, corev1.VolumeAvailable, "")
	return err
}

// volumePhase writes a volume's phase and returns the newest version of it.
func (r *reconciler) volumePhase(ctx context.Context, pv *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, message string) (*corev1.PersistentVolume, error) {
	if pv.Status.Phase == phase && pv.Status.Message == message {
		return pv, nil
	}
	out := pv.DeepCopy()
	out.Status.Phase, out.Status.Message = phase, message
	return r.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, out, metav1.UpdateOptions{})
}

func (r *reconciler) syncVolume(ctx context.Context, pv *corev1.PersistentVolume) error {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		_, err := r.volumePhase(ctx, pv, corev1.VolumeAvailable, "") // free, or kept for a claim by name
		return err
	}
	claim, err := r.claimOf(ctx, pv)
	if err != nil {
		return err
	}
	switch {
	case claim == nil:
		return r.release(ctx, pv)
	case claim.Spec.VolumeName == "":
		if volume.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec) {
			r.Recorder.Eventf(pv, corev1.EventTypeWarning, "VolumeMismatch", "Cannot bind PersistentVolume to requested PersistentVolumeClaim %q due to incompatible volumeMode.", claim.Name)
			r.Recorder.Eventf(claim, corev1.EventTypeWarning, "VolumeMismatch", "Cannot bind PersistentVolume %q to requested PersistentVolumeClaim due to incompatible volumeMode.", pv.Name)
		}
		return nil // the claim's own reconciliation completes it
	case claim.Spec.VolumeName == pv.Name:
		_, err := r.volumePhase(ctx, pv, corev1.VolumeBound, "")
		return err
	case metav1.HasAnnotation(pv.ObjectMeta, volume.AnnDynamicallyProvisioned) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		return r.release(ctx, pv) // made for a claim that has got another one meanwhile
	}
	return r.unbind(ctx, pv)
}

// claimOf returns the claim that a volume belongs to, nil when it is gone.
func (r *reconciler) claimOf(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolumeClaim, error) {
	ref := pv.Spec.ClaimRef
	claim, err := r.claims.PersistentVolumeClaims(ref.Namespace).Get(ref.Name)
	if (apierrors.IsNotFound(err) || err == nil && claim.UID != ref.UID) && pv.Status.Phase != corev1.VolumeReleased && pv.Status.Phase != corev1.VolumeFailed {
		// Data depends on it: the cache is not believed.
		claim, err = r.Client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if claim.UID != ref.UID {
		return nil, nil // another one of the same name
	}
	return claim, nil
}
