package scheduler

import (
	v1 "k8s.io/api/core/v1"
)

// Resource is what a ClusterEvent is about.
type Resource string

const (
	// Pod is any pod. Events say which kind: AssignedPod or PendingPod.
	Pod Resource = "Pod"
	// AssignedPod is a pod that has a node.
	AssignedPod Resource = "AssignedPod"
	// PendingPod is a pod that waits for a node.
	PendingPod Resource = "PendingPod"
	// Node is a node.
	Node Resource = "Node"
	// Namespace is a namespace, whose labels affinity terms may select.
	Namespace Resource = "Namespace"
	// AnyResource matches every event.
	AnyResource Resource = "*"
)

// ActionType is what happened, as bits.
type ActionType uint32

const (
	Add ActionType = 1 << iota
	Delete
	UpdateNodeAllocatable
	UpdateNodeLabel
	UpdateNodeTaint // also spec.unschedulable
	UpdateNodeCondition
	UpdateNodeAnnotation
	UpdatePodLabel
	UpdatePodScaleDown // requests became smaller
	UpdatePodTolerations
	UpdatePodGatesEliminated // the last scheduling gate went
	UpdatePodOther
	UpdateLabels // of other objects

	// AnyAction matches every action.
	AnyAction ActionType = 1<<iota - 1
	// UpdatePod matches every update of a pod.
	UpdatePod = UpdatePodLabel | UpdatePodScaleDown | UpdatePodTolerations | UpdatePodGatesEliminated | UpdatePodOther
)

// A ClusterEvent is a change that may make a waiting pod schedulable.
type ClusterEvent struct {
	Resource Resource
	Action   ActionType
}

// matches reports whether the event e is one that want asks for.
func (want ClusterEvent) matches(e ClusterEvent) bool {
	if want.Action&e.Action == 0 {
		return false
	}
	return want.Resource == AnyResource || want.Resource == e.Resource ||
		want.Resource == Pod && (e.Resource == AssignedPod || e.Resource == PendingPod)
}

// An EventHint is an event that a plug-in asks for. Worth, when not nil, decides
// whether the event can make pod schedulable; old or new is nil for an addition or a deletion.
// Both are *v1.Pod or *v1.Node. It runs under the queue's lock and must be quick.
type EventHint struct {
	Event ClusterEvent
	Worth func(pod *PodInfo, old, new any) bool
}

// nodeActions returns what changed between two versions of a node.
func nodeActions(old, new *v1.Node) (a ActionType) {
	if !sameResourceList(old.Status.Allocatable, new.Status.Allocatable) {
		a |= UpdateNodeAllocatable
	}
	if !sameMap(old.Labels, new.Labels) {
		a |= UpdateNodeLabel
	}
	if !sameTaints(old.Spec.Taints, new.Spec.Taints) || old.Spec.Unschedulable != new.Spec.Unschedulable {
		a |= UpdateNodeTaint
	}
	if !sameConditions(old.Status.Conditions, new.Status.Conditions) {
		a |= UpdateNodeCondition
	}
	if !sameMap(old.Annotations, new.Annotations) {
		a |= UpdateNodeAnnotation
	}
	return a
}

// podActions returns what changed between two versions of a pod.
func podActions(table *ResourceTable, old, new *v1.Pod) (a ActionType) {
	if !sameMap(old.Labels, new.Labels) {
		a |= UpdatePodLabel
	}
	was, _ := table.Requests(old)
	is, _ := table.Requests(new)
	for i := range max(FirstExtra+len(was.Extra), FirstExtra+len(is.Extra)) {
		if is.Get(i) < was.Get(i) {
			a |= UpdatePodScaleDown
			break
		}
	}
	if !sameTolerations(old.Spec.Tolerations, new.Spec.Tolerations) {
		a |= UpdatePodTolerations
	}
	if len(old.Spec.SchedulingGates) > 0 && len(new.Spec.SchedulingGates) == 0 {
		a |= UpdatePodGatesEliminated
	}
	if a == 0 {
		a = UpdatePodOther
	}
	return a
}
