package persistentvolume

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
)

// provision asks the class's provisioner for a volume: by an annotation, which it
// waits for.
func (r *reconciler) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	class, err := r.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
	if err != nil {
		r.Recorder.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return nil // the class's arrival brings us back
	}
	if strings.HasPrefix(class.Provisioner, "kubernetes.io/") {
		r.Recorder.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", fmt.Sprintf("no volume plugin matched name: %s", class.Provisioner))
		return nil
	}
	if claim.Annotations[volume.AnnStorageProvisioner] == class.Provisioner {
		return nil // it was asked before
	}
	start := time.Now()
	out := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, volume.AnnBetaStorageProvisioner, class.Provisioner)
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, volume.AnnStorageProvisioner, class.Provisioner)
	if _, err := r.Client.CoreV1().PersistentVolumeClaims(out.Namespace).Update(ctx, out, metav1.UpdateOptions{}); err != nil {
		return err
	}
	r.Span("volume asked of its provisioner", "PersistentVolumeClaim", claim, start, "driver", class.Provisioner)
	r.Recorder.Eventf(claim, corev1.EventTypeNormal, "ExternalProvisioning",
		"Waiting for a volume to be created either by the external provisioner '%s' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.", class.Provisioner)
	return nil
}

// release marks a volume whose claim is gone and does what its policy says.
func (r *reconciler) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	var err error
	if pv.Status.Phase != corev1.VolumeReleased && pv.Status.Phase != corev1.VolumeFailed {
		if pv, err = r.volumePhase(ctx, pv, corev1.VolumeReleased, ""); err != nil {
			return err
		}
	}
	if pv.Status.Phase == corev1.VolumeFailed || pv.DeletionTimestamp != nil {
		return nil
	}
	switch pv.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimRetain:
		return nil
	case corev1.PersistentVolumeReclaimDelete:
		if metav1.HasAnnotation(pv.ObjectMeta, volume.AnnDynamicallyProvisioned) {
			return nil // its provisioner deletes it
		}
		return r.fail(ctx, pv, "VolumeFailedDelete", fmt.Sprintf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched", pv.Name))
	case corev1.PersistentVolumeReclaimRecycle:
		return r.fail(ctx, pv, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
	}
	return r.fail(ctx, pv, "VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy")
}

func (r *reconciler) fail(ctx context.Context, pv *corev1.PersistentVolume, reason, message string) error {
	if _, err := r.volumePhase(ctx, pv, corev1.VolumeFailed, message); err != nil {
		return err
	}
	r.Recorder.Event(pv, corev1.EventTypeWarning, reason, message)
	return nil
}
