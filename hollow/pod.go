package hollow

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of pods.
const (
	// RunFor is how long the containers run, a time; then they end with ExitCode.
	RunFor = "periplus.io/hollow-run-for"
	// ExitCode is a number; default 0.
	ExitCode = "periplus.io/hollow-exit-code"
)

// restartPause is the least time that a container runs which is started again.
const restartPause = 10 * time.Second

// Pauses after a write that failed.
const (
	writePause    = 100 * time.Millisecond
	writePauseMax = 10 * time.Second
)

// A pod is what is known of one.
type pod struct {
	key   types.NamespacedName
	uid   types.UID
	node  *node
	entry entry

	revision uint64
	// object is that version, while something is to be written.
	object *corev1.Pod
	busy   bool // a write is on its way
	pause  time.Duration

	ip       netip.Addr // its own; none on the host's network
	begin    time.Time  // when it becomes Ready
	started  time.Time  // when its containers began to run
	runFor   time.Duration
	finite   bool // it runs for runFor
	exitCode int32
	restarts int32
	stopAt   time.Time // when it has stopped, once it is deleted
}

// newPod is the record of a pod that has just been seen. What it has been in an
// earlier life of this process, its status tells.
func newPod(obj *corev1.Pod, n *node, c *Config, now time.Time) *pod {
	p := &pod{key: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}, uid: obj.UID, node: n}
	delay, starts := c.Start.sample()
	if p.begin = now.Add(delay); !starts {
		p.begin = now.AddDate(100, 0, 0)
	}
	if obj.Status.Phase == corev1.PodRunning {
		p.started = now.Truncate(time.Second)
		for i := range obj.Status.ContainerStatuses {
			s := &obj.Status.ContainerStatuses[i]
			if s.State.Running != nil {
				p.started = s.State.Running.StartedAt.Time
			}
			p.restarts = max(p.restarts, s.RestartCount)
		}
	}
	if text, ok := obj.Annotations[RunFor]; ok {
		if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			p.runFor, p.finite = d, true
		}
	} else if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "Job" {
		p.runFor, p.finite = c.JobTime.sample()
	}
	if code, err := strconv.ParseInt(obj.Annotations[ExitCode], 10, 32); err == nil {
		p.exitCode = int32(code)
	}
	return p
}

// A step is what is to be written of a pod.
type step int

const (
	nothing step = iota // the API shows what is so
	start               // the containers begin to run
	update              // they run, and the API does not show it
	restart             // they have ended and run again
	end                 // they have ended by themselves
	stop                // they have obeyed the signal to stop, and the pod goes
	remove              // the pod goes
)

// next says what is to be written of the object, which is the newest version, and
// when.
func (p *pod) next(c *Config, now time.Time) (step, time.Time) {
	obj := p.object
	finished := obj.Status.Phase == corev1.PodSucceeded || obj.Status.Phase == corev1.PodFailed
	switch {
	case obj.DeletionTimestamp != nil:
		running := !p.started.IsZero() && !finished
		if p.stopAt.IsZero() {
			p.stopAt = now
			if wait, stops := c.Stop.sample(); running {
				if grace := graceOf(obj); !stops || wait > grace {
					wait = grace
				}
				p.stopAt = now.Add(wait)
			}
		}
		if running {
			return stop, p.stopAt
		}
		return remove, p.stopAt
	case finished:
		return nothing, now
	case p.started.IsZero():
		return start, p.begin
	case !p.asReported():
		return update, now
	case !p.finite:
		return nothing, now
	case p.startsAgain():
		return restart, p.started.Add(p.runFor)
	}
	return end, p.started.Add(p.runFor)
}

// status is what a step writes; nil: nothing.
func (p *pod) status(s step, now time.Time) *corev1.PodStatus {
	switch s {
	case start:
		p.started = now.Truncate(time.Second)
	case restart:
		p.restarts++
		p.started = now.Truncate(time.Second)
		p.runFor = max(p.runFor, restartPause)
	case end:
		return p.ended(now)
	case stop:
		return p.stopped(now)
	case nothing, remove:
		return nil
	case update:
	}
	return p.running(now)
}

// startsAgain says whether the containers run again after they have ended.
func (p *pod) startsAgain() bool {
	policy := p.object.Spec.RestartPolicy
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && p.exitCode != 0
}

func graceOf(obj *corev1.Pod) time.Duration {
	seconds := obj.DeletionGracePeriodSeconds
	if seconds == nil {
		return 0
	}
	return time.Duration(max(0, *seconds)) * time.Second
}

var _ actor = (*pod)(nil)

// act writes what is due.
func (p *pod) act(ctx context.Context) {
	f := p.node.fleet
	now := time.Now()
	f.mu.Lock()
	if p.busy || p.object == nil || !p.node.alive() || f.pods[p.key] != p {
		f.mu.Unlock()
		return // an event makes it due again
	}
	if p.ip == (netip.Addr{}) && !p.object.Spec.HostNetwork {
		p.ip = p.node.takeLocked()
	}
	what, due := p.next(&f.cfg, now)
	if what == nothing || due.After(now) {
		f.planLocked(p)
		f.mu.Unlock()
		return
	}
	obj, client, status := p.object, p.node.client, p.status(what, now)
	p.busy = true
	f.mu.Unlock()

	pods := client.CoreV1().Pods(p.key.Namespace)
	var got *corev1.Pod
	var err error
	if status != nil {
		written := *obj
		written.Status = *status
		got, err = pods.UpdateStatus(ctx, &written, metav1.UpdateOptions{})
	}
	going := what == stop || what == remove
	if going && (err == nil || apierrors.IsNotFound(err)) {
		zero := int64(0)
		err = pods.Delete(ctx, p.key.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.uid}})
	}
	f.wrote(ctx, p, obj, got, going, err)
}

// wrote notes how a write ended. What is to be written next follows from the newest
// version: what the write returned, or what the watch has brought meanwhile.
func (f *Fleet) wrote(ctx context.Context, p *pod, from, got *corev1.Pod, removed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.busy = false
	if got != nil && revisionOf(got) > p.revision {
		p.object, p.revision = got, revisionOf(got)
	}
	switch {
	case f.pods[p.key] != p: // forgotten meanwhile
	case apierrors.IsNotFound(err), apierrors.IsConflict(err) && p.object == from, removed && err == nil:
		// Gone, or newer than known: the watch brings it.
		p.object = nil
	case err == nil || apierrors.IsConflict(err):
		p.pause = 0
		f.writes.note(f.log, "cannot write pods", nil)
		f.planLocked(p)
	case ctx.Err() == nil:
		f.writes.note(f.log, "cannot write pods", err)
		p.pause = min(max(writePause, 2*p.pause), writePauseMax)
		f.work.at(&p.entry, p, time.Now().Add(p.pause))
	}
}
