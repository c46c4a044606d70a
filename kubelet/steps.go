package kubelet

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/journey"
)

// step records a step of the pod's journey that began at start and ends now.
func (w *worker) step(pod *corev1.Pod, step string, start time.Time, attrs map[string]string) {
	span := journey.Step("kubelet", step, "Pod", pod, start)
	span.Node, span.Attrs = w.k.cfg.NodeName, attrs
	w.k.cfg.Journey.Record(span)
}

// A stepper is how far the journey knows a container that was started here.
type stepper struct{ ready bool }

// role is what a container is in its pod, as steps call it.
func role(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name != name {
			continue
		}
		if isSidecar(c) {
			return "sidecar"
		}
		return "init container"
	}
	return "container"
}

// noteStart records that a container has started.
func (w *worker) noteStart(pod *corev1.Pod, name, id string, began time.Time) {
	w.step(pod, role(pod, name)+" started", began, map[string]string{"container": name})
	if w.state.steps == nil {
		w.state.steps = map[string]*stepper{}
	}
	w.state.steps[id] = &stepper{}
}

// noteEnds records which of the containers that were started here have ended.
func (w *worker) noteEnds(pod *corev1.Pod, rt *podRuntime) {
	if len(w.state.steps) == 0 {
		return
	}
	there := map[string]bool{}
	for _, c := range rt.containers {
		there[c.id] = !c.exited()
		if w.state.steps[c.id] == nil || !c.exited() {
			continue
		}
		span := journey.Step("kubelet", role(pod, c.name)+" ended", "Pod", pod, c.started)
		if span.Node = w.k.cfg.NodeName; !c.finished.IsZero() {
			span.End = c.finished
		}
		if c.started.IsZero() || c.started.After(span.End) {
			span.Start = span.End
		}
		w.k.cfg.Journey.Record(span.With("container", c.name, "code", strconv.Itoa(int(c.exitCode)), "reason", c.reason))
	}
	for id := range w.state.steps {
		if !there[id] {
			delete(w.state.steps, id)
		}
	}
}

// noteReady records which sidecars have become ready for the first time.
func (w *worker) noteReady(pod *corev1.Pod, status *corev1.PodStatus) {
	if len(w.state.steps) == 0 {
		return
	}
	for i := range status.InitContainerStatuses {
		s := &status.InitContainerStatuses[i]
		if !s.Ready || s.State.Running == nil || role(pod, s.Name) != "sidecar" || w.state.runtime == nil {
			continue
		}
		c := w.state.runtime.newest(s.Name)
		if c == nil || w.state.steps[c.id] == nil || w.state.steps[c.id].ready {
			continue
		}
		w.state.steps[c.id].ready = true
		start := c.started
		if start.IsZero() {
			start = time.Now()
		}
		w.step(pod, "sidecar ready", start, map[string]string{"container": s.Name})
	}
}
