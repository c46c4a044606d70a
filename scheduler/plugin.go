package scheduler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// MaxNodeScore is the highest score that a plug-in gives after normalisation; the lowest is 0.
const MaxNodeScore int64 = 100

// A Factory makes a plug-in for a profile. It is called once.
type Factory func(f *Framework) (Plugin, error)

// A Plugin implements one or more of the interfaces below and takes part at each
// extension point that it implements, in the order of the profile.
//
// PreFilter to Permit run in the scheduling goroutine, one pod at a time; Bind and
// its neighbours run in one goroutine per pod.
type Plugin interface{ Name() string }

// A PreEnqueuePlugin decides whether a pod may enter the active queue. It must not block.
type PreEnqueuePlugin interface {
	Plugin
	PreEnqueue(pod *v1.Pod) *Status
}

// A QueueSortPlugin orders the active queue. A profile has exactly one, and all
// profiles the same one.
type QueueSortPlugin interface {
	Plugin
	Less(a, b *QueuedPod) bool
}

// An EventPlugin says which events may make a pod schedulable that it rejected.
// A rejecting plug-in without it gets the pod back on every event.
type EventPlugin interface {
	Plugin
	Events() []EventHint
}

// A PreFilterPlugin computes once what its Filter needs for a pod. Skip leaves
// its Filter out for the pod.
type PreFilterPlugin interface {
	Plugin
	PreFilter(ctx context.Context, state *CycleState, pod *PodInfo) (*PreFilterResult, *Status)
}

// A PreFilterResult narrows the nodes. nil, or a nil set, means all nodes.
type PreFilterResult struct{ NodeNames sets.Set[string] }

// A PreFilterExtension updates what PreFilter computed as if other had been added
// to or removed from node. Preemption and nominated pods need it. A plug-in
// whose Filter only looks at the NodeInfo does not.
type PreFilterExtension interface {
	AddPod(state *CycleState, pod, other *PodInfo, node *NodeInfo) *Status
	RemovePod(state *CycleState, pod, other *PodInfo, node *NodeInfo) *Status
}

// A FilterPlugin decides whether a pod fits a node. It is called for many nodes
// and must not allocate on its way to Success.
type FilterPlugin interface {
	Plugin
	Filter(state *CycleState, pod *PodInfo, node *NodeInfo) *Status
}

// A PostFilterPlugin runs when no node fits, in order, until one returns Success.
type PostFilterPlugin interface {
	Plugin
	PostFilter(ctx context.Context, state *CycleState, pod *PodInfo, d *Diagnosis) (*PostFilterResult, *Status)
}

// A PostFilterResult carries a nomination. Nominated "" clears the pod's nomination.
type PostFilterResult struct{ Nominated string }

// A PreScorePlugin computes once what its Score needs. Skip leaves its Score out.
type PreScorePlugin interface {
	Plugin
	PreScore(ctx context.Context, state *CycleState, pod *PodInfo, nodes []*NodeInfo) *Status
}

// A ScorePlugin ranks a node that fits.
type ScorePlugin interface {
	Plugin
	Score(state *CycleState, pod *PodInfo, node *NodeInfo) (int64, *Status)
}

// A NormalizePlugin brings the scores of its Score for all nodes into 0..MaxNodeScore.
type NormalizePlugin interface {
	ScorePlugin
	Normalize(state *CycleState, pod *PodInfo, nodes []*NodeInfo, scores []int64) *Status
}

// A BatchPlugin says when two pods are the same to it, so that decisions can be
// reused. Same reports whether Filter and Score give a and b the same result on any
// node, and whether that result depends on the node and the pods on it alone, not on
// other nodes. A normalised score must not even depend on the pods of the node.
// Filter and Score plug-ins without this method switch batching off.
type BatchPlugin interface {
	Plugin
	Same(a, b *PodInfo) bool
}

// A ReservePlugin is told when a pod is assumed on a node, and when that is undone.
// Unreserve must be idempotent and is called for all, also those whose Reserve did not run.
type ReservePlugin interface {
	Plugin
	Reserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status
	Unreserve(ctx context.Context, state *CycleState, pod *PodInfo, node string)
}

// A PermitPlugin can approve, reject or, with Wait, hold a pod for at most the
// returned time. A held pod is released with Framework.WaitingPod.
type PermitPlugin interface {
	Plugin
	Permit(ctx context.Context, state *CycleState, pod *PodInfo, node string) (*Status, time.Duration)
}

// A PreBindPlugin prepares the node or the pod's volumes before binding.
type PreBindPlugin interface {
	Plugin
	PreBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status
}

// A BindPlugin binds; Skip passes the pod to the next.
type BindPlugin interface {
	Plugin
	Bind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status
}

// A PostBindPlugin is told that a pod was bound.
type PostBindPlugin interface {
	Plugin
	PostBind(ctx context.Context, state *CycleState, pod *PodInfo, node string)
}
