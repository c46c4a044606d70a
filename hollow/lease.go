package hollow

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pauses between tries to renew a lease, as upstream.
const (
	renewPause    = 200 * time.Millisecond
	renewPauseMax = 7 * time.Second
)

var _ actor = (*node)(nil)

// act sends the heartbeats that are due.
func (n *node) act(ctx context.Context) {
	n.beating.Lock()
	defer n.beating.Unlock()
	f := n.fleet
	f.mu.Lock()
	alive, unready, uid := n.present && !n.silent, n.unready, n.uid
	f.mu.Unlock()
	if !alive {
		return // whoever brings it back makes it due
	}
	now := time.Now()
	err := n.report(ctx, now, unready)
	if err == nil && !now.Before(n.renewAt) {
		if err = n.renew(ctx, uid); err == nil {
			n.renewAt = n.renewAt.Add(f.cfg.RenewEvery)
			if n.renewAt.Before(now) {
				n.renewAt = now.Add(f.cfg.RenewEvery)
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	f.heartbeats.note(f.log, "cannot send heartbeats", err)
	if err != nil {
		n.lease = nil
		n.pause = min(max(renewPause, 2*n.pause), renewPauseMax)
		f.beats.at(&n.beat, n, now.Add(n.pause))
		return
	}
	n.pause = 0
	f.beats.at(&n.beat, n, n.renewAt)
}

// report writes the node's status when its time has come, or when the API shows that
// the node is not well.
func (n *node) report(ctx context.Context, now time.Time, unready bool) error {
	if !unready && now.Before(n.statusAt) {
		return nil
	}
	patch, err := heartbeat(metav1.NewTime(now).Rfc3339Copy(), unready)
	if err != nil {
		return err
	}
	_, err = n.client.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil || apierrors.IsNotFound(err) { // the watch will say that it is gone
		n.statusAt = now.Add(n.fleet.cfg.StatusEvery)
		return nil
	}
	return err
}

// renew renews the last lease, or what it finds, or creates one.
func (n *node) renew(ctx context.Context, uid types.UID) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	next := n.lease
	if next == nil {
		created, err := leases.Create(ctx, n.newLease(uid), metav1.CreateOptions{})
		if err == nil {
			n.lease = created
		}
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if next, err = leases.Get(ctx, n.name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	next.Spec = n.newLease(uid).Spec
	if len(next.OwnerReferences) != 1 || next.OwnerReferences[0].UID != uid {
		next.OwnerReferences = n.newLease(uid).OwnerReferences
	}
	renewed, err := leases.Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		n.lease = nil // somebody else wrote it; look again
		if renewed, err = leases.Get(ctx, n.name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			renewed, err = leases.Create(ctx, n.newLease(uid), metav1.CreateOptions{})
		}
	}
	if err == nil {
		n.lease = renewed
	}
	return err
}

func (n *node) newLease(uid types.UID) *coordinationv1.Lease {
	now, seconds := metav1.NowMicro(), int32(4*n.fleet.cfg.RenewEvery/time.Second)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.name, Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: uid}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}
