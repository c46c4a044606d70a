package probe

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
)

// A worker is one probe of one container. Its fields are guarded by Prober.mu;
// at most one call of fire runs at a time, because it sets the timer only when it ends.
type worker struct {
	p    *Prober
	c    *container
	kind Kind
	spec *corev1.Probe

	timer   *time.Timer
	due     time.Time // when the current or next probe was or is to begin
	ctx     context.Context
	cancel  context.CancelFunc
	stopped bool

	result Result // what counts
	last   Result // the last answer
	run    int    // how often it came in a row
}

// beginLocked makes the workers of a container and starts those that may run.
// told is what was last reported about this very container, if anything.
func (p *Prober) beginLocked(c *container, told *corev1.ContainerStatus) {
	add := func(kind Kind, spec *corev1.Probe) {
		if spec == nil {
			return
		}
		w := &worker{p: p, c: c, kind: kind, spec: spec}
		w.ctx, w.cancel = context.WithCancel(p.ctx)
		c.workers[kind] = w
	}
	add(Startup, c.spec.StartupProbe)
	add(Liveness, c.spec.LivenessProbe)
	add(Readiness, c.spec.ReadinessProbe)

	adopted := c.started.Before(p.config.Since) && told != nil
	if w := c.workers[Startup]; w != nil {
		if !adopted || told.Started == nil || !*told.Started {
			w.start(adopted)
			return
		}
		w.result = Success
		w.stop()
	}
	if w := c.workers[Readiness]; w != nil && adopted && told.Ready {
		w.result = Success
	}
	c.startRest(adopted)
}

// startRest starts what waits for the startup probe.
func (c *container) startRest(adopted bool) {
	for _, kind := range []Kind{Readiness, Liveness} {
		if w := c.workers[kind]; w != nil {
			w.start(adopted)
		}
	}
}

// start sets the timer for the first probe: at the end of the initial delay, or
// at once if that is over.
func (w *worker) start(adopted bool) {
	if w.stopped || w.timer != nil {
		return
	}
	now := time.Now()
	w.due = w.c.started.Add(time.Duration(w.spec.InitialDelaySeconds) * time.Second)
	if w.due.Before(now) {
		w.due = now
		if adopted {
			w.due = now.Add(rand.N(period(w.spec))) //nolint:gosec // spreads load
		}
	}
	w.timer = time.AfterFunc(w.due.Sub(now), w.fire)
}

func (w *worker) stop() {
	w.stopped = true
	w.cancel()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// outcomes are results as upstream counts them.
var outcomes = [...]string{Unknown: "unknown", Success: "successful", Failure: "failed"}

// fire runs one probe, tells of a change, and sets the timer for the next.
func (w *worker) fire() {
	p := w.p
	p.mu.Lock()
	if w.stopped || p.closed {
		p.mu.Unlock()
		return
	}
	p.calls.Add(1)
	defer p.calls.Done()
	c := *w.c // pod and podIP as they are now
	p.mu.Unlock()

	result, message, err := p.ask(w.ctx, &c, w.kind, w.spec)
	if p.config.Count != nil && w.ctx.Err() == nil {
		p.config.Count(c.pod, c.spec.Name, w.kind, outcomes[result])
	}

	p.mu.Lock()
	var update *Update
	if !w.stopped && err == nil {
		update = w.count(result, message)
	}
	onChange := p.onChange
	p.mu.Unlock()

	// Told before the next probe can begin: the updates of one probe are in order.
	if update != nil {
		if p.config.Changed != nil {
			p.config.Changed(*update)
		}
		if onChange != nil {
			onChange(update.PodUID)
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if w.stopped {
		return
	}
	// Like a ticker: a probe that took longer than its period is followed by the next at once.
	now := time.Now()
	w.due = w.due.Add(period(w.spec))
	if w.due.Before(now) {
		w.due = now
	}
	w.timer.Reset(w.due.Sub(now))
}

// count applies the thresholds. It returns an update when the result changed.
func (w *worker) count(r Result, message string) *Update {
	if r == w.last {
		w.run++
	} else {
		w.last, w.run = r, 1
	}
	if w.run < threshold(w.spec, r) {
		return nil
	}
	changed := w.result != r
	w.result = r
	switch {
	case w.kind == Startup && r == Success:
		w.stop()
		w.c.startRest(false)
	case w.kind != Readiness && r == Failure:
		w.stop() // the container will be killed; the new one has new workers
	}
	if !changed {
		return nil
	}
	w.p.config.Log.Debug("probe result changed", base.KeyPod, w.c.pod.Namespace+"/"+w.c.pod.Name,
		base.KeyContainer, w.c.spec.Name, base.KeyKind, string(w.kind), "result", r.String())
	return &Update{
		PodUID: w.c.pod.UID, Namespace: w.c.pod.Namespace, Pod: w.c.pod.Name,
		Container: w.c.spec.Name, ContainerID: w.c.id,
		Kind: w.kind, Result: r, Message: message,
		GracePeriodSeconds: w.spec.TerminationGracePeriodSeconds,
	}
}
