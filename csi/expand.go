package csi

import (
	"context"
	"slices"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// PendingOnNode reports whether a volume has grown, but not yet its file system.
func PendingOnNode(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	size, have := pv.Spec.Capacity[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && have.Cmp(size) < 0 && have.Cmp(want) < 0
}

// ExpandOnNode lets the file system of a volume that is mounted here grow to the
// volume's size, and says so in the claim.
func ExpandOnNode(ctx context.Context, client kubernetes.Interface, d *Driver, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, staging, published string) error {
	can, err := d.Capabilities(ctx)
	if err != nil {
		return err
	}
	size := pv.Spec.Capacity[corev1.ResourceStorage]
	if can.NodeExpand {
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		_, err := d.NodeExpandVolume(call, &csipb.NodeExpandVolumeRequest{
			VolumeId: pv.Spec.CSI.VolumeHandle, VolumePath: published, StagingTargetPath: staging,
			CapacityRange:    &csipb.CapacityRange{RequiredBytes: size.Value()},
			VolumeCapability: Capability(IsBlock(pv.Spec.VolumeMode), AccessMode(pv.Spec.AccessModes, can), pv.Spec.CSI.FSType, pv.Spec.MountOptions, ""),
		})
		if err != nil {
			return err
		}
	}
	return Resized(ctx, client, pv, claim)
}

// Resized says in the claim that it has its new size.
func Resized(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	return ClaimStatus(ctx, client, claim, func(s *corev1.PersistentVolumeClaimStatus) {
		if s.Capacity == nil {
			s.Capacity = corev1.ResourceList{}
		}
		s.Capacity[corev1.ResourceStorage] = pv.Spec.Capacity[corev1.ResourceStorage]
		delete(s.AllocatedResourceStatuses, corev1.ResourceStorage)
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimResizing || c.Type == corev1.PersistentVolumeClaimFileSystemResizePending
		})
	})
}

// ClaimStatus changes the status of the newest version of a claim; it writes nothing
// where change changes nothing.
func ClaimStatus(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaimStatus)) error {
	fresh, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || fresh.UID != claim.UID {
		return err
	}
	out := fresh.DeepCopy()
	change(&out.Status)
	if equality.Semantic.DeepEqual(fresh.Status, out.Status) {
		return nil
	}
	_, err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return err
}
