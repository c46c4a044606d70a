package attachdetach

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	nodeutil "k8s.io/component-helpers/node/util"
)

// forceAfter is how long a node that does not answer may hold a volume: then it is
// detached although it may be mounted there.
const forceAfter = 6 * time.Minute

func uniqueName(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + pv.Spec.CSI.Driver + "^" + pv.Spec.CSI.VolumeHandle)
}

// inUse says for how long a volume must not be detached yet, because its node may
// have it mounted: until the node says otherwise, or has been silent for too long.
func (r *reconciler) inUse(va *storagev1.VolumeAttachment, name string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	pv, err := r.volumes.Get(name)
	node, nodeErr := r.nodes.Get(va.Spec.NodeName)
	if err != nil || nodeErr != nil || pv.Spec.CSI == nil || !slices.Contains(node.Status.VolumesInUse, uniqueName(pv)) ||
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }) {
		delete(r.waiting, va.UID)
		return 0
	}
	now := r.Clock.Now()
	since, ok := r.waiting[va.UID]
	if !ok {
		r.waiting[va.UID], since = now, now
	}
	left := forceAfter - now.Sub(since)
	if left > 0 {
		return left
	}
	healthy := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if healthy {
		return forceAfter // it will say when it has let go
	}
	delete(r.waiting, va.UID)
	return 0
}

// showAttached writes what is attached into the node's status.
func (r *reconciler) showAttached(ctx context.Context, name string, list []*storagev1.VolumeAttachment) error {
	node, err := r.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var attached []corev1.AttachedVolume
	for _, va := range list {
		if va.Spec.NodeName != name || !va.Status.Attached || va.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		if pv, err := r.volumes.Get(*va.Spec.Source.PersistentVolumeName); err == nil && pv.Spec.CSI != nil {
			attached = append(attached, corev1.AttachedVolume{Name: uniqueName(pv)})
		}
	}
	slices.SortFunc(attached, func(a, b corev1.AttachedVolume) int { return strings.Compare(string(a.Name), string(b.Name)) })
	if slices.Equal(attached, node.Status.VolumesAttached) {
		return nil
	}
	out := node.DeepCopy()
	out.Status.VolumesAttached = attached
	_, _, err = nodeutil.PatchNodeStatus(r.Client.CoreV1(), types.NodeName(name), node, out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
