package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the conditions Progressing and Available.
const (
	reasonNewSet      = "NewReplicaSetCreated"
	reasonFound       = "FoundNewReplicaSet"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonCreateError = "ReplicaSetCreateError"
	reasonAvailable   = "NewReplicaSetAvailable"
	reasonTimedOut    = "ProgressDeadlineExceeded"
	reasonPaused      = "DeploymentPaused"
	reasonResumed     = "DeploymentResumed"

	reasonMinimum   = "MinimumReplicasAvailable"
	reasonNoMinimum = "MinimumReplicasUnavailable"
)

func condition(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

func remove(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == t })
}

// set puts a condition into status, unless it is there with this status and
// reason. The time of transition stays when only the reason changed.
func (roll *rollout) set(s *appsv1.DeploymentStatus, t appsv1.DeploymentConditionType, value corev1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(roll.Clock.Now())
	roll.put(s, appsv1.DeploymentCondition{
		Type: t, Status: value, LastUpdateTime: now, LastTransitionTime: now, Reason: reason, Message: message,
	})
}

func (roll *rollout) put(s *appsv1.DeploymentStatus, c appsv1.DeploymentCondition) {
	if current := condition(s, c.Type); current != nil {
		if current.Status == c.Status && current.Reason == c.Reason {
			return
		}
		if current.Status == c.Status {
			c.LastTransitionTime = current.LastTransitionTime
		}
	}
	remove(s, c.Type)
	s.Conditions = append(s.Conditions, c)
}

// status computes the Deployment's status from its sets.
func (roll *rollout) status() appsv1.DeploymentStatus {
	d := roll.d
	all := roll.all()
	s := *d.Status.DeepCopy()
	s.ObservedGeneration = d.Generation
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas = 0, 0, 0, 0
	s.TerminatingReplicas = nil
	terminating, counted := int32(0), true
	for _, rs := range all {
		s.Replicas += rs.Status.Replicas
		s.ReadyReplicas += rs.Status.ReadyReplicas
		s.AvailableReplicas += rs.Status.AvailableReplicas
		if rs.Status.TerminatingReplicas == nil {
			counted = false
		} else {
			terminating += *rs.Status.TerminatingReplicas
		}
	}
	if counted {
		s.TerminatingReplicas = &terminating
	}
	if roll.newest != nil {
		s.UpdatedReplicas = roll.newest.Status.Replicas
	}
	s.UnavailableReplicas = max(0, total(all)-s.AvailableReplicas)
	if s.AvailableReplicas >= declared(d)-maxUnavailable(d) {
		roll.set(&s, appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonMinimum, "Deployment has minimum availability.")
	} else {
		roll.set(&s, appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonNoMinimum, "Deployment does not have minimum availability.")
	}
	return s
}

// report writes the status of a rollout with its progress. It returns how long
// until the progress deadline, while one runs.
func (roll *rollout) report(ctx context.Context) (time.Duration, error) {
	d := roll.d
	s := roll.status()
	current := condition(&d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(d) {
		remove(&s, appsv1.DeploymentProgressing)
	} else if done := s.Replicas == s.UpdatedReplicas && current != nil && current.Reason == reasonAvailable; !done {
		roll.progress(&s, current)
	}
	if failure := roll.failure(); failure != nil {
		roll.put(&s, *failure)
	} else {
		remove(&s, appsv1.DeploymentReplicaFailure)
	}
	if !complete(d, &roll.cached.Status) && complete(d, &s) {
		roll.Span("rollout complete", kind.Kind, d, time.Now())
	}
	if !equality.Semantic.DeepEqual(&roll.cached.Status, &s) || roll.cached.Annotations[revisionAnnotation] != d.Annotations[revisionAnnotation] {
		if err := roll.write(ctx, s); err != nil {
			return 0, err
		}
	}
	return roll.untilDeadline(&s), nil
}

// progress sets the Progressing condition: complete, moved on, or timed out.
func (roll *rollout) progress(s *appsv1.DeploymentStatus, current *appsv1.DeploymentCondition) {
	d := roll.d
	subject := fmt.Sprintf("Deployment %q", d.Name)
	if roll.newest != nil {
		subject = fmt.Sprintf("ReplicaSet %q", roll.newest.Name)
	}
	switch {
	case complete(d, s):
		roll.set(s, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonAvailable, subject+" has successfully progressed.")
	case progressing(&roll.cached.Status, s):
		// Progress renews the time of update even if nothing else changes: the
		// deadline counts from it.
		now := metav1.NewTime(roll.Clock.Now())
		c := appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, LastUpdateTime: now, LastTransitionTime: now,
			Reason: reasonUpdated, Message: subject + " is progressing.",
		}
		if current != nil && current.Status == corev1.ConditionTrue {
			c.LastTransitionTime = current.LastTransitionTime
		}
		remove(s, appsv1.DeploymentProgressing)
		s.Conditions = append(s.Conditions, c)
	case roll.timedOut(current):
		roll.set(s, appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonTimedOut, subject+" has timed out progressing.")
	}
}

func (roll *rollout) timedOut(current *appsv1.DeploymentCondition) bool {
	switch {
	case current == nil, current.Reason == reasonAvailable:
		return false
	case current.Reason == reasonTimedOut:
		return true
	}
	return roll.Clock.Now().After(deadline(roll.d, current))
}

func deadline(d *appsv1.Deployment, c *appsv1.DeploymentCondition) time.Time {
	return c.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
}

// untilDeadline returns when to look again for lack of progress; a second later
// than the deadline, for times are stored in whole seconds.
func (roll *rollout) untilDeadline(s *appsv1.DeploymentStatus) time.Duration {
	c := condition(s, appsv1.DeploymentProgressing)
	if !hasDeadline(roll.d) || c == nil || complete(roll.d, s) || c.Reason == reasonTimedOut || c.Reason == reasonAvailable {
		return 0
	}
	return max(0, deadline(roll.d, c).Sub(roll.Clock.Now())) + time.Second
}

// failure returns a set's failure to make or delete pods as a condition of the
// Deployment; the newest set's goes before others'.
func (roll *rollout) failure() *appsv1.DeploymentCondition {
	sets := roll.old
	if roll.newest != nil {
		sets = append([]*appsv1.ReplicaSet{roll.newest}, roll.old...)
	}
	for _, rs := range sets {
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				return &appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status,
					LastTransitionTime: c.LastTransitionTime, LastUpdateTime: c.LastTransitionTime,
					Reason: c.Reason, Message: c.Message,
				}
			}
		}
	}
	return nil
}

// complete says whether all pods are of the current version and available.
func complete(d *appsv1.Deployment, s *appsv1.DeploymentStatus) bool {
	n := declared(d)
	return s.UpdatedReplicas == n && s.Replicas == n && s.AvailableReplicas == n && s.ObservedGeneration >= d.Generation
}

// progressing says whether the status has got nearer to completion.
func progressing(before, now *appsv1.DeploymentStatus) bool {
	return now.UpdatedReplicas > before.UpdatedReplicas ||
		now.Replicas-now.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		now.ReadyReplicas > before.ReadyReplicas ||
		now.AvailableReplicas > before.AvailableReplicas
}
