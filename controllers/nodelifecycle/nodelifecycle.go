package nodelifecycle

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// Controller declares the node lifecycle controller. Its keys are nodes.
func Controller() controllers.Controller {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	return controllers.Controller{
		Name:   "node-lifecycle-controller",
		Reads:  []schema.GroupVersionResource{nodes, pods, coordinationv1.SchemeGroupVersion.WithResource("leases")},
		Writes: []schema.GroupVersionResource{nodes, pods},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	nodes corelisters.NodeLister
	pods  cache.Indexer

	recount  atomic.Bool // a node's readiness changed since the zones were counted
	counting sync.Mutex  // held while the zones are counted

	mu    sync.Mutex // guards seen and zones
	seen  map[string]*sighting
	zones zones
}

// A sighting is what this process knows of a node's life signs, by its own clock:
// the nodes' clocks may be wrong.
type sighting struct {
	at    time.Time
	ready bool // the last Ready condition handled was True
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	if err := controllers.IndexPodsByNode(core.Pods().Informer()); err != nil {
		return nil, err
	}
	r := &reconciler{
		Setup: s, nodes: core.Nodes().Lister(), pods: core.Pods().Informer().GetIndexer(),
		seen: map[string]*sighting{}, zones: zones{state: map[string]zoneState{}, next: map[string]time.Time{}},
	}
	s.Need(core.Pods().Informer())
	s.Watch(core.Nodes().Informer(), controllers.On(r.nodeChanged))
	s.Watch(s.Informers.Coordination().V1().Leases().Informer(), controllers.On(func(_, now *coordinationv1.Lease) {
		// A renewal needs no reconciliation: the node's timer looks at the time.
		if now != nil && now.Namespace == corev1.NamespaceNodeLease {
			r.see(now.Name, false)
		}
	}))
	return r, nil
}

func (r *reconciler) nodeChanged(old, now *corev1.Node) {
	if now == nil {
		r.recount.Store(true)
		r.mu.Lock()
		delete(r.seen, old.Name)
		r.mu.Unlock()
		r.Recorder.Eventf(nodeRef(old), corev1.EventTypeNormal, "RemovingNode", "Node %s event: Removing Node %s from Controller", old.Name, old.Name)
		r.Queue.Add(controllers.Key{Name: old.Name})
		return
	}
	if old == nil {
		r.Recorder.Eventf(nodeRef(now), corev1.EventTypeNormal, "RegisteredNode", "Node %s event: Registered Node %s in Controller", now.Name, now.Name)
	}
	var before *corev1.NodeCondition
	if old != nil {
		before = conditions.Node(&old.Status, corev1.NodeReady)
	}
	after := conditions.Node(&now.Status, corev1.NodeReady)
	if before == nil || after == nil || before.Status != after.Status {
		r.recount.Store(true)
	}
	if before == nil || after == nil || !before.LastHeartbeatTime.Equal(&after.LastHeartbeatTime) || before.Status != after.Status {
		r.see(now.Name, true)
	}
	if old == nil || relevant(old, now) {
		r.Queue.Add(controllers.Key{Name: now.Name})
	}
}

// relevant says whether an update changes what taints are made of.
func relevant(old, now *corev1.Node) bool {
	if old.Spec.Unschedulable != now.Spec.Unschedulable || len(old.Spec.Taints) != len(now.Spec.Taints) ||
		len(old.Status.Conditions) != len(now.Status.Conditions) || old.UID != now.UID {
		return true
	}
	for i := range now.Spec.Taints {
		if !now.Spec.Taints[i].MatchTaint(&old.Spec.Taints[i]) {
			return true
		}
	}
	for i := range now.Status.Conditions {
		if c := conditions.Node(&old.Status, now.Status.Conditions[i].Type); c == nil || c.Status != now.Status.Conditions[i].Status {
			return true
		}
	}
	return false
}

// see notes a sign of life. A lease may outlive its node: only a node makes an entry.
func (r *reconciler) see(node string, create bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen[node]
	if s == nil {
		if !create {
			return
		}
		s = &sighting{}
		r.seen[node] = s
	}
	s.at = r.Clock.Now()
}

// Reconcile brings one node's conditions, taints and pods in line with its signs
// of life, and returns when the node will have been silent for too long.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	node, err := r.nodes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		r.rezone()
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	now := r.Clock.Now()
	last, wasReady := r.lastSeen(node.Name)
	grace := r.Options.NodeGracePeriod
	if conditions.Node(&node.Status, corev1.NodeReady) == nil {
		grace = r.Options.NodeStartupGrace
	}
	var wait time.Duration
	if left := last.Add(grace).Sub(now); left > 0 {
		wait = left
	} else if updated := silent(node, metav1.NewTime(now)); updated != nil {
		if node, err = r.Client.CoreV1().Nodes().UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return 0, ignoreMissing(err)
		}
	}
	ready := conditions.Node(&node.Status, corev1.NodeReady)
	isReady := ready != nil && ready.Status == corev1.ConditionTrue
	r.rezone()
	taintWait, err := r.taint(ctx, node, now)
	if err != nil {
		return 0, err
	}
	if !isReady && ready != nil && (wasReady || ready.Status == corev1.ConditionUnknown) {
		if wasReady {
			r.Recorder.Eventf(nodeRef(node), corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
		}
		if err := r.unreadyPods(ctx, node.Name); err != nil {
			return 0, err
		}
	}
	r.setReady(node.Name, isReady)
	if wait == 0 || taintWait > 0 && taintWait < wait {
		wait = taintWait
	}
	return wait, nil
}

func ignoreMissing(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// nodeRef is what events about a node refer to.
func nodeRef(n *corev1.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: n.Name, UID: n.UID}
}

func (r *reconciler) lastSeen(node string) (at time.Time, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen[node]
	if s == nil {
		s = &sighting{at: r.Clock.Now()}
		r.seen[node] = s
	}
	return s.at, s.ready
}

func (r *reconciler) setReady(node string, ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seen[node]; s != nil {
		s.ready = ready
	}
}

// silent returns the node with its kubelet's conditions Unknown, or nil when they
// are already.
func silent(node *corev1.Node, now metav1.Time) *corev1.Node {
	out := node.DeepCopy()
	changed := false
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		c := conditions.Node(&out.Status, t)
		switch {
		case c == nil:
			out.Status.Conditions = append(out.Status.Conditions, corev1.NodeCondition{
				Type: t, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: node.CreationTimestamp, LastTransitionTime: now,
			})
			changed = true
		case c.Status != corev1.ConditionUnknown:
			c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			c.LastTransitionTime = now
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return out
}

// unreadyPods takes the pods of a node that does not answer out of their Services.
func (r *reconciler) unreadyPods(ctx context.Context, node string) error {
	var ready []*corev1.Pod
	for _, p := range controllers.PodsOnNode(r.pods, node) {
		if conditions.PodReady(p) {
			ready = append(ready, p)
		}
	}
	return controllers.Parallel(len(ready), 16, func(i int) error {
		pod := ready[i].DeepCopy()
		c := conditions.Pod(&pod.Status, corev1.PodReady)
		c.Status = corev1.ConditionFalse
		c.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		c.ObservedGeneration = pod.Generation
		if _, err := r.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return ignoreMissing(err)
		}
		r.Recorder.Event(ready[i], corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
		return nil
	})
}
