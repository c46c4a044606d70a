package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/base"
)

// keepLease renews the node's lease in kube-node-lease until ctx ends.
func (n *Node) keepLease(ctx context.Context) {
	ticker := time.NewTicker(n.cfg.RenewEvery)
	defer ticker.Stop()
	var (
		lease *coordinationv1.Lease
		retry = 200 * time.Millisecond
	)
	for {
		n.tick(ctx)
		next, err := n.renew(ctx, lease)
		if err == nil {
			lease, retry = next, 200*time.Millisecond
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		// The namespace appears a moment after the API server does.
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			n.cfg.Log.Warn("cannot renew the node's lease", base.KeyNode, n.cfg.Name, base.KeyError, err)
		}
		lease = nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
			retry = min(2*retry, 7*time.Second)
		}
	}
}

// tick calls Tick, not more often than the lease is renewed.
func (n *Node) tick(ctx context.Context) {
	now := time.Now()
	if now.Sub(n.ticked) < n.cfg.RenewEvery*9/10 {
		return
	}
	n.ticked = now
	n.cfg.Tick(ctx)
}

// renew renews last, or what it finds, or creates the lease.
func (n *Node) renew(ctx context.Context, last *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := n.cfg.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if last == nil {
		created, err := leases.Create(ctx, n.newLease(), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
		if last, err = leases.Get(ctx, n.cfg.Name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
	next := last.DeepCopy()
	fresh := n.newLease()
	next.Spec.HolderIdentity = fresh.Spec.HolderIdentity
	next.Spec.LeaseDurationSeconds = fresh.Spec.LeaseDurationSeconds
	next.Spec.RenewTime = fresh.Spec.RenewTime
	if len(next.OwnerReferences) == 0 {
		next.OwnerReferences = fresh.OwnerReferences
	}
	return leases.Update(ctx, next, metav1.UpdateOptions{})
}

func (n *Node) newLease() *coordinationv1.Lease {
	now, seconds := metav1.NowMicro(), int32(n.cfg.LeaseDuration/time.Second)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Namespace: corev1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.cfg.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if node := n.Current(); node != nil {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	return l
}
