package tainteviction

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/periplus/periplus/controllers"
)

// Controller declares the eviction by taints. Its keys are pods.
func Controller() controllers.Controller {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	return controllers.Controller{
		Name:  "taint-eviction-controller",
		Reads: []schema.GroupVersionResource{nodes, pods}, Writes: []schema.GroupVersionResource{pods},
		New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	nodes corelisters.NodeLister
	pods  corelisters.PodLister
	index cache.Indexer

	mu    sync.Mutex
	since map[types.UID]time.Time // when a pod with a deadline was first seen under its taints; guarded by mu
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	if err := controllers.IndexPodsByNode(core.Pods().Informer()); err != nil {
		return nil, err
	}
	r := &reconciler{
		Setup: s, nodes: core.Nodes().Lister(), pods: core.Pods().Lister(), index: core.Pods().Informer().GetIndexer(),
		since: map[types.UID]time.Time{},
	}
	s.Watch(core.Nodes().Informer(), controllers.On(r.nodeChanged))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	return r, nil
}

func (r *reconciler) nodeChanged(old, now *corev1.Node) {
	if now == nil {
		return // pod GC takes care of its pods
	}
	var before []corev1.Taint
	if old != nil {
		before = noExecute(old)
	}
	after := noExecute(now)
	if len(before) == 0 && len(after) == 0 || old != nil && equality.Semantic.DeepEqual(before, after) {
		return
	}
	for _, p := range controllers.PodsOnNode(r.index, now.Name) {
		r.Queue.Add(controllers.KeyOf(p))
	}
}

func (r *reconciler) podChanged(old, now *corev1.Pod) {
	if now == nil {
		r.forget(old.UID)
		return
	}
	if now.Spec.NodeName == "" || now.DeletionTimestamp != nil ||
		old != nil && old.Spec.NodeName == now.Spec.NodeName && equality.Semantic.DeepEqual(old.Spec.Tolerations, now.Spec.Tolerations) {
		return
	}
	if node, err := r.nodes.Get(now.Spec.NodeName); err == nil && len(noExecute(node)) == 0 {
		return
	}
	r.Queue.Add(controllers.KeyOf(now))
}

func noExecute(n *corev1.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, t)
		}
	}
	return out
}

func (r *reconciler) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, uid)
}

func (r *reconciler) firstSeen(uid types.UID, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.since[uid]
	if !ok {
		at = now
		r.since[uid] = now
	}
	return at
}

// Reconcile deletes the pod if its time under the node's taints is over.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	pod, err := r.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return 0, err
	}
	node, err := r.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	now := r.Clock.Now()
	tolerated, limited := tolerance(noExecute(node), pod.Spec.Tolerations)
	switch {
	case tolerated < 0:
	case !limited:
		r.mu.Lock()
		_, pending := r.since[pod.UID]
		delete(r.since, pod.UID)
		r.mu.Unlock()
		if pending {
			r.Recorder.Eventf(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Cancelling deletion of Pod %s", key)
		}
		return 0, nil
	default:
		if left := r.firstSeen(pod.UID, now).Add(tolerated).Sub(now); left > 0 {
			return left, nil
		}
	}
	r.Recorder.Eventf(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s", key)
	err = controllers.Disrupt(ctx, r.Client, pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", false)
	if err == nil {
		uid := pod.UID
		err = r.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return 0, err
}

// tolerance returns for how long the tolerations bear the taints: limited is false
// when for ever, and a negative duration says not at all.
func tolerance(taints []corev1.Taint, tolerations []corev1.Toleration) (d time.Duration, limited bool) {
	for i := range taints {
		tolerated := false
		for j := range tolerations {
			t := &tolerations[j]
			if !t.ToleratesTaint(klog.Background(), &taints[i], false) {
				continue
			}
			tolerated = true
			if t.TolerationSeconds != nil {
				own := time.Duration(max(0, *t.TolerationSeconds)) * time.Second
				if !limited || own < d {
					d, limited = own, true
				}
			}
			break // the first that matches counts
		}
		if !tolerated {
			return -1, true
		}
	}
	return d, limited
}
