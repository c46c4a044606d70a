package statefulset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createClaims makes those claims of a pod that are missing.
func (p *pass) createClaims(ctx context.Context, pod *corev1.Pod, ordinal int) error {
	for i := range p.set.Spec.VolumeClaimTemplates {
		template := &p.set.Spec.VolumeClaimTemplates[i]
		have, err := p.claims.PersistentVolumeClaims(p.set.Namespace).Get(claimName(p.set, template, ordinal))
		switch {
		case apierrors.IsNotFound(err):
			claim := newClaim(p.set, template, ordinal)
			p.retain(claim, pod, false)
			_, err := p.Client.CoreV1().PersistentVolumeClaims(p.set.Namespace).Create(ctx, claim, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			if err != nil {
				p.Recorder.Eventf(p.set, corev1.EventTypeWarning, "FailedCreate", "Create Claim %s for Pod %s in StatefulSet %s failed error: %s", claim.Name, pod.Name, p.set.Name, err)
				return err
			}
			p.Recorder.Eventf(p.set, corev1.EventTypeNormal, "SuccessfulCreate", "Create Claim %s Pod %s in StatefulSet %s success", claim.Name, pod.Name, p.set.Name)
		case err != nil:
			return err
		case have.DeletionTimestamp != nil:
			return fmt.Errorf("pvc %s is being deleted", have.Name)
		}
	}
	return nil
}

// stale reports whether a claim of the pod is about to go with an earlier pod: the
// new one must not get hold of it.
func (p *pass) stale(ordinal int) bool {
	for i := range p.set.Spec.VolumeClaimTemplates {
		claim, err := p.claims.PersistentVolumeClaims(p.set.Namespace).Get(claimName(p.set, &p.set.Spec.VolumeClaimTemplates[i], ordinal))
		if err != nil {
			continue
		}
		for _, o := range claim.OwnerReferences {
			if o.Kind == "Pod" && o.Name == podName(p.set, ordinal) {
				return true
			}
		}
		if claim.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// followPolicy lets the garbage collector delete the pod's claims when the
// retention policy says so: with the set, or with a pod that is scaled away (KEP-1847).
func (p *pass) followPolicy(ctx context.Context, pod *corev1.Pod, ordinal int, condemned bool) error {
	for i := range p.set.Spec.VolumeClaimTemplates {
		have, err := p.claims.PersistentVolumeClaims(p.set.Namespace).Get(claimName(p.set, &p.set.Spec.VolumeClaimTemplates[i], ordinal))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		claim := have.DeepCopy()
		if !p.retain(claim, pod, condemned) {
			continue
		}
		if _, err := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// retain sets the owners of a claim by the policy and reports whether that changed them.
func (p *pass) retain(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, condemned bool) bool {
	policy := p.set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return false
	}
	withSet := policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	withPod := policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType && condemned
	if withPod {
		withSet = false
	}
	changed := own(claim, withSet, kind.GroupVersion().String(), kind.Kind, p.set)
	if pod.UID != "" {
		changed = own(claim, withPod, "v1", "Pod", pod) || changed
	}
	return changed
}

// own adds or removes owner's reference.
func own(claim *corev1.PersistentVolumeClaim, wanted bool, version, kind string, owner metav1.Object) bool {
	at := slices.IndexFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() })
	switch {
	case wanted && at < 0:
		block := true
		claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{
			APIVersion: version, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &block,
		})
	case !wanted && at >= 0:
		claim.OwnerReferences = slices.Delete(claim.OwnerReferences, at, at+1)
	default:
		return false
	}
	return true
}
