package kubelet

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/journey"
)

const (
	deadlineReason  = "DeadlineExceeded"
	deadlineMessage = "Pod was active on the node longer than the specified deadline"
)

// sync brings one pod nearer to its spec. again is when to look again without
// being woken (0: not at all); done means that the worker can be forgotten.
//
//	begin ─► observe ─► report ─► actions ─► execute ─► observe ─► report
//	   │rejected             │finished                   deleted at any time
//	   └────────────► terminate ─► finish ◄────────────────┘
func (w *worker) sync(ctx context.Context, pod *corev1.Pod, removed bool) (again time.Duration, done bool) {
	s := &w.state
	w.takeOrder()
	if s.terminated {
		return w.finish(ctx, pod, removed)
	}
	if !s.begun && !removed {
		w.begin(pod)
	}
	if !s.terminating {
		w.checkDeadline(pod)
	}
	if removed || pod.DeletionTimestamp != nil || s.terminating {
		return w.terminate(ctx, pod, removed)
	}
	rt, err := w.k.observe(ctx, w.uid, s.runtime)
	if err != nil {
		return w.failed(pod, "cannot ask the runtime about a pod", err), false
	}
	pod = w.allocate(pod)
	w.observed(pod, rt)

	status := w.report(pod)
	if podFinished(status) {
		return w.terminate(ctx, pod, false)
	}
	if rt.current() == nil && !isHostNetwork(pod) && !w.k.networkReady.Load() {
		if !s.networkTold {
			s.networkTold = true
			w.k.cfg.Events.Event(pod, corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: container runtime network not ready")
		}
		w.status.set(status, 0)
		return w.untilDeadline(pod, 0), false // the network's readiness wakes it
	}

	w.refreshVolumes(ctx, pod)
	a := computeActions(pod, rt, w.k.probes)
	if a.empty() && s.mounts != nil {
		w.resized(pod, rt)
		w.publish(pod, status)
		w.collect(ctx, pod)
		s.failures = 0
		return w.untilDeadline(pod, 0), false
	}
	w.status.set(status, w.k.cfg.StatusDelay)

	again, err = w.execute(ctx, pod, a)
	if ctx.Err() != nil {
		return 0, false // interrupted: the loop comes again
	}
	if rt, e := w.k.observe(ctx, w.uid, rt); e == nil {
		w.observed(pod, rt)
		w.resized(pod, rt)
	}
	status = w.report(pod)
	w.publish(pod, status)
	if err != nil {
		retry := w.failed(pod, "a pod's sync failed", err)
		if again == 0 || retry < again {
			again = retry
		}
	} else {
		s.failures = 0
		w.collect(ctx, pod)
	}
	if podFinished(status) {
		return time.Nanosecond, false
	}
	return w.untilDeadline(pod, again), false
}

// refreshVolumes lets the downward API follow changed labels and annotations.
func (w *worker) refreshVolumes(ctx context.Context, pod *corev1.Pod) {
	s := &w.state
	if len(s.mounts) == 0 || w.k.cfg.Volumes == nil {
		return
	}
	if old := s.refreshed; old != nil && maps.Equal(old.Labels, pod.Labels) && maps.Equal(old.Annotations, pod.Annotations) {
		return
	}
	if s.refreshed != nil {
		if err := w.k.cfg.Volumes.Refresh(ctx, pod); err != nil {
			w.k.log.Warn("cannot refresh a pod's volumes", base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyError, err)
			return
		}
	}
	s.refreshed = pod
}

// failed logs an error of a sync and says when to try again.
func (w *worker) failed(pod *corev1.Pod, message string, err error) time.Duration {
	again := w.retryDelay()
	w.k.log.Warn(message, base.KeyPod, pod.Namespace+"/"+pod.Name, base.KeyUID, pod.UID, base.KeyError, err, "again", again)
	return again
}

// begin is the first look at a pod: one that never started here has to be admitted.
func (w *worker) begin(pod *corev1.Pod) {
	s := &w.state
	s.begun, s.startTime = true, time.Now()
	if pod.Status.StartTime != nil {
		s.startTime = pod.Status.StartTime.Time
	}
	switch {
	case podFinished(&pod.Status):
		s.terminating = true
		return
	case pod.DeletionTimestamp != nil:
		return
	case pod.Status.StartTime == nil:
		w.step(pod, "seen by the kubelet", s.startTime, nil)
	}
	if reason, message, ok := w.k.admit(w, pod); !ok {
		w.k.metrics.rejections.Of(metric.Labels{reason}).Inc()
		w.k.cfg.Events.Event(pod, corev1.EventTypeWarning, reason, message)
		s.terminating = true
		s.cause = cause{phase: corev1.PodFailed, reason: reason, message: "Pod was rejected: " + message, rejected: true}
	}
}

// checkDeadline ends a pod whose activeDeadlineSeconds are over.
func (w *worker) checkDeadline(pod *corev1.Pod) {
	if left, ok := w.deadlineLeft(pod); ok && left <= 0 {
		w.k.cfg.Events.Event(pod, corev1.EventTypeNormal, deadlineReason, deadlineMessage)
		w.state.terminating = true
		w.state.cause = cause{phase: corev1.PodFailed, reason: deadlineReason, message: deadlineMessage}
	}
}

func (w *worker) deadlineLeft(pod *corev1.Pod) (time.Duration, bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil {
		return 0, false
	}
	d := time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second
	return d - time.Since(w.state.startTime), true
}

// untilDeadline is again, or the pod's deadline if that comes sooner.
func (w *worker) untilDeadline(pod *corev1.Pod, again time.Duration) time.Duration {
	if left, ok := w.deadlineLeft(pod); ok && (again == 0 || left < again) {
		return max(left, time.Nanosecond)
	}
	return again
}

// report derives the pod's status from the newest observation.
func (w *worker) report(pod *corev1.Pod) *corev1.PodStatus {
	s := &w.state
	r := reporter{
		pod: pod, old: w.status.last(), rt: s.runtime, waiting: s.waiting, probes: w.k.probes,
		containerID: w.k.containerID, hostIPs: w.k.node.IPs(), startTime: s.startTime,
		cause: s.cause, resize: []*corev1.PodCondition{s.resize.pending, s.resize.failed}, terminated: s.terminated, terminating: s.terminating,
	}
	return r.status()
}

// publish hands a status to the API. A pod that is merely on
// its way up can wait a little, so that a quick start is a single write.
func (w *worker) publish(pod *corev1.Pod, status *corev1.PodStatus) {
	delay := time.Duration(0)
	if status.Phase == corev1.PodPending && len(w.state.waiting) == 0 {
		delay = w.k.cfg.StatusDelay
	}
	w.noteReady(pod, status)
	if !w.state.readyNoted && conditionTrue(status, corev1.PodReady) {
		w.state.readyNoted = true
		if !conditionTrue(&pod.Status, corev1.PodReady) {
			w.k.metrics.podStart.Of(metric.Labels{}).Observe(time.Since(w.state.startTime).Seconds())
		}
		if !conditionTrue(&pod.Status, corev1.PodReady) {
			w.step(pod, journey.StepReady, time.Now(), nil)
		}
	}
	w.status.set(status, delay)
}

func (a *actions) empty() bool {
	return !a.createSandbox && len(a.stop)+len(a.startInit)+len(a.start)+len(a.startEphemeral)+len(a.resize) == 0
}
