package sidecar

import (
	"context"
	"slices"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/csi"
)

type resizer struct{ duty }

func (c Config) resizer(s *controllers.Setup) (controllers.Reconciler, error) {
	r := &resizer{duty: c.duty(s)}
	look := func(c *corev1.PersistentVolumeClaim) {
		if c != nil && growing(c) {
			s.Queue.Add(controllers.KeyOf(c))
		}
	}
	s.Watch(s.Informers.Core().V1().PersistentVolumeClaims().Informer(), controllers.On(func(_, now *corev1.PersistentVolumeClaim) { look(now) }))
	r.again(func() {
		if list, err := r.claims.List(labels.Everything()); err == nil {
			for _, c := range list {
				look(c)
			}
		}
	})
	return r, nil
}

// growing reports whether a claim asks for more than it has.
func growing(claim *corev1.PersistentVolumeClaim) bool {
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil && have.Cmp(want) < 0
}

// Reconcile lets the volume of a claim grow, then its file system.
func (r *resizer) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	claim, err := r.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || !growing(claim) {
		return 0, err
	}
	// What the cache has may be of before the last pass, whose work would be begun again.
	claim, err = r.Client.CoreV1().PersistentVolumeClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil || !growing(claim) {
		return 0, ignoreNotFound(err)
	}
	pv, err := r.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || pv.Spec.CSI == nil || !r.serves(pv.Spec.CSI.Driver) || !r.here(pv) {
		return 0, ignoreNotFound(err)
	}
	d, err := r.Drivers.Get(pv.Spec.CSI.Driver)
	if err != nil {
		return 0, err
	}
	onNode := true
	want, have := claim.Spec.Resources.Requests[corev1.ResourceStorage], pv.Spec.Capacity[corev1.ResourceStorage]
	if have.Cmp(want) < 0 {
		if pv, onNode, err = r.growVolume(ctx, d, pv, claim); err != nil {
			r.Recorder.Eventf(claim, corev1.EventTypeWarning, "VolumeResizeFailed", "resize volume %q by resizer %q failed: %s", pv.Name, pv.Spec.CSI.Driver, csi.Message(err))
			return 0, err
		}
	}
	if !onNode || csi.IsBlock(pv.Spec.VolumeMode) {
		if err := csi.Resized(ctx, r.Client, pv, claim); err != nil {
			return 0, err
		}
		r.Recorder.Event(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "Resize volume succeeded")
		return 0, nil
	}
	return 0, r.growFileSystem(ctx, d, pv, claim)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// growVolume is ControllerExpandVolume. It returns the volume even if it fails.
func (r *resizer) growVolume(ctx context.Context, d *csi.Driver, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (_ *corev1.PersistentVolume, onNode bool, err error) {
	can, err := d.Capabilities(ctx)
	if err != nil {
		return pv, false, err
	}
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	r.Recorder.Eventf(claim, corev1.EventTypeNormal, "Resizing", "External resizer is resizing volume %s", pv.Name)
	if err := r.mark(ctx, claim, corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue,
	}); err != nil {
		return pv, false, err
	}
	size, onNode := want, can.NodeExpand
	if can.Expand {
		secrets, err := r.secrets(ctx, pv.Spec.CSI.ControllerExpandSecretRef)
		if err != nil {
			return pv, false, err
		}
		call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
		defer cancel()
		resp, err := d.ControllerExpandVolume(call, &csipb.ControllerExpandVolumeRequest{
			VolumeId: pv.Spec.CSI.VolumeHandle, CapacityRange: &csipb.CapacityRange{RequiredBytes: want.Value()}, Secrets: secrets,
			VolumeCapability: csi.Capability(csi.IsBlock(pv.Spec.VolumeMode), csi.AccessMode(pv.Spec.AccessModes, can), pv.Spec.CSI.FSType, pv.Spec.MountOptions, ""),
		})
		if err != nil {
			return pv, false, err
		}
		if resp.GetCapacityBytes() > want.Value() {
			size = *resource.NewQuantity(resp.GetCapacityBytes(), resource.BinarySI)
		}
		onNode = resp.GetNodeExpansionRequired()
	}
	out := pv.DeepCopy()
	out.Spec.Capacity[corev1.ResourceStorage] = size
	updated, err := r.Client.CoreV1().PersistentVolumes().Update(ctx, out, metav1.UpdateOptions{})
	if err != nil {
		return pv, false, err
	}
	return updated, onNode, nil
}

// growFileSystem is NodeExpandVolume, where the volume is mounted and the driver can
// do it then; else the next mount does it.
func (r *resizer) growFileSystem(ctx context.Context, d *csi.Driver, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	pending := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
		Message: "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
	}
	staging, published := r.Staged(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	can, err := d.Capabilities(ctx)
	if err != nil {
		return err
	}
	if published == "" || !can.NodeExpand {
		if marked(claim) {
			return nil
		}
		r.Recorder.Event(claim, corev1.EventTypeNormal, "FileSystemResizeRequired", "Require file system resize of volume on node")
		return r.mark(ctx, claim, corev1.PersistentVolumeClaimNodeResizePending, pending)
	}
	err = csi.ExpandOnNode(ctx, r.Client, d, pv, claim, staging, published)
	if err == nil {
		r.Recorder.Eventf(claim, corev1.EventTypeNormal, "FileSystemResizeSuccessful", "MountVolume.NodeExpandVolume succeeded for volume %q", pv.Name)
		return nil
	}
	if !marked(claim) {
		r.Recorder.Eventf(claim, corev1.EventTypeWarning, "FileSystemResizeFailed", "MountVolume.NodeExpandVolume failed for volume %q : %s", pv.Name, csi.Message(err))
		if e := r.mark(ctx, claim, corev1.PersistentVolumeClaimNodeResizePending, pending); e != nil {
			return e
		}
	}
	if status.Code(err) == codes.FailedPrecondition {
		return nil // it must be unmounted first
	}
	return err
}

func marked(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizePending
}

// mark writes how far the growing has come.
func (r *resizer) mark(ctx context.Context, claim *corev1.PersistentVolumeClaim, state corev1.ClaimResourceStatus, condition corev1.PersistentVolumeClaimCondition) error {
	if claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == state {
		return nil
	}
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return csi.ClaimStatus(ctx, r.Client, claim, func(s *corev1.PersistentVolumeClaimStatus) {
		if have := s.Capacity[corev1.ResourceStorage]; have.Cmp(want) >= 0 {
			return // a mount was faster
		}
		if s.AllocatedResourceStatuses == nil {
			s.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
		}
		if s.AllocatedResources == nil {
			s.AllocatedResources = corev1.ResourceList{}
		}
		s.AllocatedResourceStatuses[corev1.ResourceStorage] = state
		s.AllocatedResources[corev1.ResourceStorage] = want
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimResizing || c.Type == corev1.PersistentVolumeClaimFileSystemResizePending
		})
		condition.LastTransitionTime = metav1.Now()
		s.Conditions = append(s.Conditions, condition)
	})
}
