package kubelet

import (
	"context"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/volume"
)

// A worker handles one pod, serially. Its goroutine exists while it is dirty.
type worker struct {
	k      *Kubelet
	uid    types.UID
	status *statusWriter

	mu      sync.Mutex // guards the following
	pod     *corev1.Pod
	removed bool // the API has no such pod any more
	dirty   bool
	running bool
	cancel  context.CancelFunc // of the sync under way
	timer   *time.Timer        // wakes the worker when something is due
	stopped bool               // the kubelet ends
	ids     map[string]bool    // of the runtime's containers, for events without a pod
	ips     []string           // the pod's addresses, for other goroutines

	admitted     *corev1.Pod              // while the pod has its share of the node
	ordered      *cause                   // the node wants the pod to end
	orderTaken   bool                     // and the worker knows
	removeDead   []chan struct{}          // to be closed when a finished pod's containers are removed
	endings      []chan struct{}          // to be closed when nothing of the pod runs any more
	waitsForRoom bool                     // a resize is deferred until another pod goes
	boxID        string                   // the ready sandbox
	liveByName   map[string]string        // running containers by name; replaced, never changed
	live         map[string]bool          // running containers
	exits        map[string]chan struct{} // closed when the container ends

	// The rest belongs to the goroutine.
	state podState
}

// podState is what the kubelet remembers of a pod between two syncs. None of it
// is needed to find a pod again after a restart.
type podState struct {
	begun       bool // seen and admitted, or found running
	startTime   time.Time
	runtime     *podRuntime
	waiting     map[string]waitReason // why containers do not run, by name
	terminating bool
	cause       cause                     // why it ends, if the kubelet decided that
	terminated  bool                      // nothing runs any more, volumes are gone
	deleted     bool                      // the API object's deletion was accepted
	readyNoted  bool                      // the journey has the step "ready"
	steps       map[string]*stepper       // containers that were started here, by ID
	failures    int                       // syncs in a row that ended with an error
	backOffKeys []string                  // to be forgotten with the pod
	mounts      map[string]volume.Mounted // nil before the volumes are mounted
	refreshed   *corev1.Pod               // whose labels and annotations the volumes show
	networkTold bool                      // the NetworkNotReady event was sent
	resize      resizing
	removeDead  []chan struct{} // asked for by removeDead
}

// waitReason is a container's waiting state.
type waitReason struct{ reason, message string }

// cause is why the kubelet ends a pod that nobody deleted.
type cause struct {
	phase           corev1.PodPhase
	reason, message string
	grace           *int64
	rejected        bool                 // nothing of the pod ever ran here
	condition       *corev1.PodCondition // that goes with it, if any
}

func newWorker(k *Kubelet, uid types.UID) *worker {
	w := &worker{k: k, uid: uid}
	w.state.waiting = map[string]waitReason{}
	w.status = newStatusWriter(k, uid)
	return w
}

// update takes a newer version of the pod. A sync under way is interrupted when
// the pod is to end, or to end sooner.
func (w *worker) update(pod *corev1.Pod) {
	if !isStatic(pod) {
		w.status.observed(pod)
	}
	w.mu.Lock()
	old := w.pod
	w.pod = pod
	ends := pod.DeletionTimestamp != nil
	sooner := ends && (old == nil || old.DeletionTimestamp == nil || graceOf(pod) < graceOf(old))
	if old != nil && sooner && w.cancel != nil {
		w.cancel()
	}
	if old == nil || !onlyStatusDiffers(old, pod) {
		w.wakeLocked()
	}
	w.mu.Unlock()
}

// onlyStatusDiffers recognises the echo of our own status writes.
func onlyStatusDiffers(a, b *corev1.Pod) bool {
	return a.Generation != 0 && a.Generation == b.Generation && len(b.Spec.ReadinessGates) == 0 &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && graceOf(a) == graceOf(b) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		len(a.Finalizers) == len(b.Finalizers)
}

// remove is called when the API's object is gone; pod is its last version.
func (w *worker) remove(pod *corev1.Pod) {
	w.status.drop()
	w.mu.Lock()
	defer w.mu.Unlock()
	ending := w.pod != nil && w.pod.DeletionTimestamp != nil // then the sync under way is its end
	w.removed = true
	if w.pod == nil || pod != nil && pod.DeletionTimestamp != nil {
		w.pod = pod
	}
	if w.cancel != nil && !ending {
		w.cancel()
	}
	w.wakeLocked()
}

func (w *worker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakeLocked()
}

func (w *worker) wakeLocked() {
	w.dirty = true
	if w.running || w.stopped || w.pod == nil || w.k.ctx == nil || w.k.ctx.Err() != nil {
		return
	}
	w.running = true
	w.k.tasks.Go(w.loop)
}

func (w *worker) loop() {
	for {
		w.mu.Lock()
		if !w.dirty || w.stopped || w.k.ctx.Err() != nil {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.dirty = false
		if w.timer != nil {
			w.timer.Stop()
			w.timer = nil
		}
		ctx, cancel := context.WithCancel(w.k.ctx)
		w.cancel = cancel
		pod, removed := w.pod, w.removed
		w.mu.Unlock()

		began, first := time.Now(), !w.state.begun
		again, done := w.guarded(ctx, pod, removed)
		w.k.metrics.synced(first, began)

		w.mu.Lock()
		interrupted := ctx.Err() != nil
		cancel()
		w.cancel = nil
		if interrupted {
			w.dirty = true // what interrupted it has to be looked at
		}
		if again > 0 && !w.dirty && !w.stopped {
			w.timer = time.AfterFunc(again, w.wake)
		}
		w.ids = idsOf(w.state.runtime)
		if done {
			w.running, w.stopped = false, true
			w.mu.Unlock()
			w.k.forget(w)
			return
		}
		w.mu.Unlock()
	}
}

// guarded runs one sync; a panic in it fails this pod's sync, not the node.
func (w *worker) guarded(ctx context.Context, pod *corev1.Pod, removed bool) (again time.Duration, done bool) {
	defer func() {
		if p := recover(); p != nil {
			w.k.log.Error("panic in a pod's sync", base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyError, p, "stack", string(debug.Stack()))
			again = w.retryDelay()
		}
	}()
	return w.sync(ctx, pod, removed)
}

// retryDelay is how long to wait after a failed sync: 0.5 s doubling to 10 s.
func (w *worker) retryDelay() time.Duration {
	w.state.failures++
	return min(10*time.Second, 250*time.Millisecond<<min(w.state.failures, 6))
}

func (w *worker) owns(containerID string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ids[containerID]
}

func idsOf(p *podRuntime) map[string]bool {
	if p == nil || len(p.containers)+len(p.sandboxes) == 0 {
		return nil
	}
	ids := make(map[string]bool, len(p.containers)+len(p.sandboxes))
	for _, c := range p.containers {
		ids[c.id] = true
	}
	for _, s := range p.sandboxes {
		ids[s.id] = true
	}
	return ids
}

func (w *worker) stopTimers() {
	w.mu.Lock()
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.status.stop()
}

func graceOf(pod *corev1.Pod) int64 {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return 30
}
