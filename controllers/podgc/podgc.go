package podgc

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

// quarantine is how long a node has to be missing before its pods are deleted.
const quarantine = 40 * time.Second

// Keys without namespace stand for a node's pods, or for all finished pods.
const nodePrefix = "node/"

const reasonGC = "DeletionByPodGC"

var finishedKey = controllers.Key{Name: "finished"}

// Controller declares pod garbage collection.
func Controller() controllers.Controller {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	return controllers.Controller{
		Name:  "pod-garbage-collector-controller",
		Reads: []schema.GroupVersionResource{nodes, pods}, Writes: []schema.GroupVersionResource{pods},
		Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	nodes    corelisters.NodeLister
	pods     corelisters.PodLister
	index    cache.Indexer
	finished atomic.Int64 // pods that have ended

	mu      sync.Mutex
	missing map[string]time.Time // since when a node is; guarded by mu
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	if err := controllers.IndexPodsByNode(core.Pods().Informer()); err != nil {
		return nil, err
	}
	r := &reconciler{
		Setup: s, nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), index: core.Pods().Informer().GetIndexer(),
		missing: map[string]time.Time{},
	}
	s.Watch(core.Nodes().Informer(), controllers.On(func(old, now *corev1.Node) {
		if now == nil {
			s.Queue.Add(nodeKey(old.Name))
		} else if outOfService(now) && (old == nil || !outOfService(old)) {
			s.Queue.Add(nodeKey(now.Name))
		}
	}))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	return r, nil
}

// kept says whether a pod counts as finished and kept. One that this controller
// moved to Failed just before deleting it does not, or it would push out another.
func kept(p *corev1.Pod) bool {
	if !controllers.PodFinished(p) || p.DeletionTimestamp != nil {
		return false
	}
	c := conditions.Pod(&p.Status, corev1.DisruptionTarget)
	return c == nil || c.Reason != reasonGC
}

func nodeKey(name string) controllers.Key { return controllers.Key{Name: nodePrefix + name} }

func (r *reconciler) podChanged(old, now *corev1.Pod) {
	before := old != nil && kept(old)
	after := now != nil && kept(now)
	switch {
	case after && !before:
		if r.finished.Add(1) > int64(r.Options.TerminatedPods) && r.Options.TerminatedPods > 0 {
			r.Queue.Add(finishedKey)
		}
	case before && !after:
		r.finished.Add(-1)
	}
	if now == nil {
		return
	}
	terminating := now.DeletionTimestamp != nil && (old == nil || old.DeletionTimestamp == nil)
	if now.Spec.NodeName == "" {
		if terminating {
			r.Queue.Add(controllers.KeyOf(now))
		}
		return
	}
	if old == nil || old.Spec.NodeName == "" || terminating {
		if node, err := r.nodes.Get(now.Spec.NodeName); err != nil || terminating && outOfService(node) {
			r.Queue.Add(nodeKey(now.Spec.NodeName))
		}
	}
}

func outOfService(n *corev1.Node) bool {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return !ready && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// Reconcile handles one pod without a node, one node's pods, or the finished pods.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	if key.Namespace != "" {
		pod, err := r.pods.Pods(key.Namespace).Get(key.Name)
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil || pod.DeletionTimestamp == nil || pod.Spec.NodeName != "" {
			return 0, err
		}
		return 0, r.remove(ctx, pod, "")
	}
	if key == finishedKey {
		return 0, r.removeFinished(ctx)
	}
	return r.node(ctx, strings.TrimPrefix(key.Name, nodePrefix))
}

// removeFinished deletes the oldest finished pods beyond the limit.
func (r *reconciler) removeFinished(ctx context.Context) error {
	all, err := r.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(p *corev1.Pod) bool { return !kept(p) })
	if r.Options.TerminatedPods < 0 {
		return nil
	}
	excess := len(all) - r.Options.TerminatedPods
	if excess <= 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return controllers.Parallel(excess, 16, func(i int) error { return r.remove(ctx, all[i], "") })
}

// node deletes the pods of a node that is gone, or the terminating ones of a node
// that is out of service.
func (r *reconciler) node(ctx context.Context, name string) (time.Duration, error) {
	pods := controllers.PodsOnNode(r.index, name)
	node, err := r.nodes.Get(name)
	if err == nil {
		r.found(name)
		if !outOfService(node) {
			return 0, nil
		}
		pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
		return 0, controllers.Parallel(len(pods), 16, func(i int) error { return r.remove(ctx, pods[i], "") })
	}
	if !apierrors.IsNotFound(err) {
		return 0, err
	}
	if len(pods) == 0 {
		r.found(name)
		return 0, nil
	}
	if left := quarantine - r.missingFor(name); left > 0 {
		return left, nil
	}
	// The cache may be wrong; the server is not.
	if _, err := r.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		r.found(name)
		return 0, err
	}
	r.found(name)
	return 0, controllers.Parallel(len(pods), 16, func(i int) error { return r.remove(ctx, pods[i], "PodGC: node no longer exists") })
}

func (r *reconciler) missingFor(node string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	since, ok := r.missing[node]
	if !ok {
		since = now
		r.missing[node] = now
	}
	return now.Sub(since)
}

func (r *reconciler) found(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, node)
}

// remove moves a pod that has not ended to Failed, so that whoever counts it does,
// and deletes it without a grace period: there is no kubelet to wait for. why goes
// into the condition DisruptionTarget if it is not empty.
func (r *reconciler) remove(ctx context.Context, pod *corev1.Pod, why string) error {
	var err error
	switch {
	case why != "":
		err = controllers.Disrupt(ctx, r.Client, pod, reasonGC, why, true)
	case !controllers.PodFinished(pod):
		out := pod.DeepCopy()
		out.Status.Phase = corev1.PodFailed
		_, err = r.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	uid, now := pod.UID, int64(0)
	err = r.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return err
}
