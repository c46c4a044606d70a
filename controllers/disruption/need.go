package disruption

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// need is how many pods there should be, and how many of them healthy.
type need struct{ expected, healthy int32 }

// need computes a budget's need. Percentages and maxUnavailable are of the sizes
// that the pods' owners declare; pods without owner (unmanaged) do not count there.
func (r *reconciler) need(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (n need, unmanaged int, err error) {
	switch least, most := b.Spec.MinAvailable, b.Spec.MaxUnavailable; {
	case most != nil:
		if n.expected, unmanaged, err = r.declared(pods); err != nil {
			return n, unmanaged, err
		}
		away, err := intstr.GetScaledValueFromIntOrPercent(most, int(n.expected), true)
		if err != nil {
			return n, unmanaged, err
		}
		n.healthy = max(0, n.expected-int32(away))
	case least != nil && least.Type == intstr.Int:
		n.healthy, n.expected = least.IntVal, int32(len(pods))
	case least != nil:
		if n.expected, unmanaged, err = r.declared(pods); err != nil {
			return n, unmanaged, err
		}
		kept, err := intstr.GetScaledValueFromIntOrPercent(least, int(n.expected), true)
		if err != nil {
			return n, unmanaged, err
		}
		n.healthy = int32(kept)
	}
	return n, unmanaged, nil
}

// declared adds up the sizes of the owners of pods.
func (r *reconciler) declared(pods []*corev1.Pod) (sum int32, unmanaged int, err error) {
	seen := map[types.UID]bool{}
	for _, p := range pods {
		ref := metav1.GetControllerOfNoCopy(p)
		if ref == nil {
			unmanaged++
			continue
		}
		if seen[ref.UID] {
			continue
		}
		seen[ref.UID] = true
		uid, size, err := r.size(p.Namespace, ref)
		if apierrors.IsNotFound(err) {
			return 0, unmanaged, fmt.Errorf("found no controllers for pod %q", p.Name)
		}
		if err != nil {
			return 0, unmanaged, err
		}
		if uid != ref.UID && seen[uid] {
			continue // another ReplicaSet of the same Deployment
		}
		seen[uid] = true
		sum += size
	}
	return sum, unmanaged, nil
}

// size returns the declared size of a pod's owner, or of the owner's: a
// Deployment stands for its ReplicaSets.
func (r *reconciler) size(namespace string, ref *metav1.OwnerReference) (types.UID, int32, error) {
	missing := apierrors.NewNotFound(policyv1.Resource(ref.Kind), ref.Name)
	switch ref.Kind {
	case "ReplicaSet":
		rs, err := r.sets.ReplicaSets(namespace).Get(ref.Name)
		if err != nil || rs.UID != ref.UID {
			return "", 0, missing
		}
		if up := metav1.GetControllerOfNoCopy(rs); up != nil && up.Kind == "Deployment" {
			if d, err := r.deployments.Deployments(namespace).Get(up.Name); err == nil && d.UID == up.UID {
				return d.UID, *d.Spec.Replicas, nil
			}
		}
		return rs.UID, *rs.Spec.Replicas, nil
	case "ReplicationController":
		rc, err := r.rcs.ReplicationControllers(namespace).Get(ref.Name)
		if err != nil || rc.UID != ref.UID {
			return "", 0, missing
		}
		return rc.UID, *rc.Spec.Replicas, nil
	case "StatefulSet":
		s, err := r.stateful.StatefulSets(namespace).Get(ref.Name)
		if err != nil || s.UID != ref.UID {
			return "", 0, missing
		}
		return s.UID, *s.Spec.Replicas, nil
	}
	return "", 0, missing
}
