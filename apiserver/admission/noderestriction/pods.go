package noderestriction

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/admission"
)

// pod lets a node make mirror pods of its own, and delete pods that are bound to it.
func (p plugin) pod(node string, a *admission.Attributes) error {
	switch a.Operation {
	case admission.Create:
		return p.mirrorPod(node, a)
	case admission.Delete:
		old, err := get[*corev1.Pod](p, pods, a.Namespace, a.Name)
		if err != nil {
			return err
		}
		if old.Spec.NodeName != node {
			return fmt.Errorf("node %q can only delete pods with spec.nodeName set to itself", node)
		}
		return nil
	}
	return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", a.Operation, node)
}

func podStatus(node string, a *admission.Attributes) error {
	if a.Operation != admission.Update {
		return fmt.Errorf("unexpected operation %q", a.Operation)
	}
	old, ok := a.Old.(*corev1.Pod)
	if !ok {
		return unexpectedType(a.Old)
	}
	now, ok := a.Object.(*corev1.Pod)
	switch {
	case old.Spec.NodeName != node:
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	case !ok:
		return unexpectedType(a.Object)
	case !maps.Equal(old.Labels, now.Labels):
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	case !equality.Semantic.DeepEqual(old.Status.ResourceClaimStatuses, now.Status.ResourceClaimStatuses):
		return fmt.Errorf("node %q cannot update resource claim statues", node)
	case !equality.Semantic.DeepEqual(old.Status.ExtendedResourceClaimStatus, now.Status.ExtendedResourceClaimStatus):
		return fmt.Errorf("node %q cannot update extended resource claim status", node)
	case !equality.Semantic.DeepEqual(old.Status.NodeAllocatableResourceClaimStatuses, now.Status.NodeAllocatableResourceClaimStatuses):
		return fmt.Errorf("node %q cannot update node allocatable resource claim statuses", node)
	}
	return nil
}

func (p plugin) eviction(node string, a *admission.Attributes) error {
	if a.Operation != admission.Create {
		return fmt.Errorf("unexpected operation %s", a.Operation)
	}
	if _, ok := a.Object.(*policyv1.Eviction); !ok {
		return unexpectedType(a.Object)
	}
	name := nameOf(a)
	if name == "" {
		return errors.New("could not determine pod from request data")
	}
	pod, err := get[*corev1.Pod](p, pods, a.Namespace, name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %s can only evict pods with spec.nodeName set to itself", node)
	}
	return nil
}

// mirrorPod checks a pod that stands for one from a file: it must not give its
// node access to anything.
func (p plugin) mirrorPod(node string, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return unexpectedType(a.Object)
	}
	if _, is := pod.Annotations[corev1.MirrorPodAnnotationKey]; !is {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := p.owned(node, pod); err != nil {
		return err
	}
	what, err := references(pod)
	if err != nil {
		return fmt.Errorf("error checking mirror pod for API references: %w", err)
	}
	if what != "" {
		return fmt.Errorf("node %q can not create pods that reference %s", node, what)
	}
	return nil
}

// owned checks that a mirror pod belongs to its node and to nobody else.
func (p plugin) owned(node string, pod *corev1.Pod) error {
	switch len(pod.OwnerReferences) {
	case 0:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	case 1:
	default:
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	}
	owner := &pod.OwnerReferences[0]
	switch {
	case owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != node:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	case owner.Controller == nil || !*owner.Controller:
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", node)
	case owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion:
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	n, err := get[*corev1.Node](p, nodes, "", node)
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil:
		return fmt.Errorf("error looking up node %s to verify uid: %w", node, err)
	case n.UID != owner.UID:
		return fmt.Errorf("node %s UID mismatch: expected %s got %s", node, owner.UID, n.UID)
	}
	return nil
}
