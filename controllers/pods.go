package controllers

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/journey"
)

// PodFromTemplate returns a pod made from template, controlled by owner and part
// of its journey. The server completes its name.
func PodFromTemplate(template *corev1.PodTemplateSpec, owner metav1.Object, ref *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    PodNamePrefix(owner.GetName()),
			Namespace:       owner.GetNamespace(),
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*ref},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	journey.Inherit(pod, owner)
	return pod
}

// PodNamePrefix returns the prefix for the names of an owner's pods: its name and
// a dash, without the dash where that would not make a valid name.
func PodNamePrefix(owner string) string {
	if prefix := owner + "-"; len(apivalidation.NameIsDNSSubdomain(prefix, true)) == 0 {
		return prefix
	}
	return owner
}

// PodActive says whether a pod still runs or will: it has neither finished nor is
// it being deleted.
func PodActive(p *corev1.Pod) bool {
	return !PodFinished(p) && p.DeletionTimestamp == nil
}

// PodFinished says whether all containers of a pod have ended for good.
func PodFinished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// PodAvailable says whether the pod has been ready for minReady seconds at time
// now; if it is ready but not yet for so long, wait is how long that will take.
func PodAvailable(p *corev1.Pod, minReady int32, now time.Time) (available bool, wait time.Duration) {
	c := conditions.Pod(&p.Status, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	if c.LastTransitionTime.IsZero() {
		return false, 0
	}
	wait = c.LastTransitionTime.Add(time.Duration(minReady) * time.Second).Sub(now)
	return wait <= 0, max(0, wait)
}
