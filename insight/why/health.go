package why

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// Health is how an object does by its own status.
type Health string

// How objects do.
const (
	Good     Health = "healthy"
	Starting Health = "starting"
	Bad      Health = "unhealthy"
)

// patience is how long a thing may take before it counts as unhealthy.
const patience = time.Minute

// health reads an object's status.
func health(s *insight.Snapshot, o insight.Object) (Health, string) {
	if t := o.GetDeletionTimestamp(); t != nil {
		return Bad, "is being deleted since " + s.Age(t.Time)
	}
	young := s.Now.Sub(o.GetCreationTimestamp().Time) < patience
	switch o := o.(type) {
	case *corev1.Pod:
		return podHealth(o, young)
	case *appsv1.Deployment:
		return replicas(o.Spec.Replicas, o.Status.AvailableReplicas, o.Status.UpdatedReplicas, young)
	case *appsv1.ReplicaSet:
		return replicas(o.Spec.Replicas, o.Status.ReadyReplicas, o.Status.Replicas, young)
	case *appsv1.StatefulSet:
		return replicas(o.Spec.Replicas, o.Status.ReadyReplicas, o.Status.UpdatedReplicas, young)
	case *appsv1.DaemonSet:
		n := o.Status.DesiredNumberScheduled
		return replicas(&n, o.Status.NumberReady, o.Status.UpdatedNumberScheduled, young)
	case *batchv1.Job:
		return jobHealth(o)
	case *corev1.Service:
		return serviceHealth(s, o)
	case *corev1.PersistentVolumeClaim:
		if o.Status.Phase == corev1.ClaimBound {
			return Good, "is bound to " + o.Spec.VolumeName
		}
		if o.Status.Phase == corev1.ClaimLost {
			return Bad, "has lost its volume"
		}
		return slow(young), "is not bound"
	case *corev1.PersistentVolume:
		return Good, "is " + strings.ToLower(string(cmp.Or(o.Status.Phase, corev1.VolumeAvailable)))
	case *corev1.Node:
		return nodeHealth(o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return Good, fmt.Sprintf("wants %d replicas, has %d", o.Status.DesiredReplicas, o.Status.CurrentReplicas)
	}
	return Good, "is there"
}

func slow(young bool) Health {
	if young {
		return Starting
	}
	return Bad
}

func replicas(want *int32, ready, updated int32, young bool) (Health, string) {
	n := int32(1)
	if want != nil {
		n = *want
	}
	text := fmt.Sprintf("%d of %d replicas are ready", ready, n)
	if n == 1 {
		text = fmt.Sprintf("%d of 1 replica is ready", ready)
	}
	if ready >= n && updated < n {
		return Starting, text + fmt.Sprintf(", %d of them of the new revision", updated)
	}
	if ready >= n {
		return Good, text
	}
	return slow(young), text
}

func podHealth(p *corev1.Pod, young bool) (Health, string) {
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		return Good, "has ended well"
	case corev1.PodFailed:
		return Bad, strings.TrimSuffix("has failed: "+cmp.Or(p.Status.Reason, "a container ended with an error"), ": ")
	case corev1.PodRunning:
		if conditions.PodReady(p) {
			return Good, "is ready"
		}
		return slow(young), "runs and is not ready"
	case corev1.PodUnknown:
		return Bad, "is in an unknown state"
	}
	if p.Spec.NodeName == "" {
		return slow(young), "has no node"
	}
	return slow(young), "has not started on node " + p.Spec.NodeName
}

func jobHealth(j *batchv1.Job) (Health, string) {
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return Good, "is complete"
		case batchv1.JobFailed:
			return Bad, "has failed: " + c.Reason
		case batchv1.JobSuspended:
			return Bad, "is suspended"
		}
	}
	if j.Status.Failed > 0 {
		return Bad, fmt.Sprintf("runs; %d pods have failed", j.Status.Failed)
	}
	return Good, "runs"
}

func serviceHealth(s *insight.Snapshot, svc *corev1.Service) (Health, string) {
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return Good, "leads to " + svc.Spec.ExternalName
	}
	n := s.ReadyEndpoints(svc)
	switch n {
	case 0:
		return Bad, "has no ready endpoint"
	case 1:
		return Good, "has 1 ready endpoint"
	}
	return Good, fmt.Sprintf("has %d ready endpoints", n)
}

func nodeHealth(n *corev1.Node) (Health, string) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			if n.Spec.Unschedulable {
				return Good, "is ready, but takes no new pods"
			}
			return Good, "is ready"
		}
	}
	return Bad, "is not ready"
}
