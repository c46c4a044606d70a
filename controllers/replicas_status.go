package controllers

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/client/conditions"
)

// replicaStatus computes an owner's status from its active pods. wait is how long
// until the next ready pod becomes available, zero if none is waiting.
func replicaStatus(owner *ReplicaOwner, active []*corev1.Pod, terminating int32, manageErr error, now time.Time) (appsv1.ReplicaSetStatus, time.Duration) {
	status := *owner.Status.DeepCopy()
	status.ObservedGeneration = owner.Object.GetGeneration()
	status.Replicas = int32(len(active))
	status.FullyLabeledReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	if !owner.NoTerminating {
		status.TerminatingReplicas = &terminating
	}

	template := labels.SelectorFromSet(owner.Template.Labels)
	var wait time.Duration
	for _, p := range active {
		if template.Matches(labels.Set(p.Labels)) {
			status.FullyLabeledReplicas++
		}
		if !conditions.PodReady(p) {
			continue
		}
		status.ReadyReplicas++
		available, left := PodAvailable(p, owner.MinReady, now)
		if available {
			status.AvailableReplicas++
		} else if left > 0 && (wait == 0 || left < wait) {
			wait = left
		}
	}

	failure := failureIndex(status.Conditions)
	switch {
	case manageErr != nil && failure < 0:
		reason := "FailedCreate"
		var failed *manageError
		if errors.As(manageErr, &failed) {
			reason = failed.reason
		}
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(), Reason: reason, Message: manageErr.Error(),
		})
	case manageErr == nil && failure >= 0:
		status.Conditions = append(status.Conditions[:failure:failure], status.Conditions[failure+1:]...)
	}
	return status, wait
}

func failureIndex(conditions []appsv1.ReplicaSetCondition) int {
	for i := range conditions {
		if conditions[i].Type == appsv1.ReplicaSetReplicaFailure {
			return i
		}
	}
	return -1
}

// statusEqual compares statuses; a missing count of terminating pods is zero, so
// that it alone never causes a write.
func statusEqual(a, b *appsv1.ReplicaSetStatus) bool {
	x, y := *a, *b
	if deref(x.TerminatingReplicas) != deref(y.TerminatingReplicas) {
		return false
	}
	x.TerminatingReplicas, y.TerminatingReplicas = nil, nil
	return equality.Semantic.DeepEqual(&x, &y)
}

func deref(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}
