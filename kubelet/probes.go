package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/kubelet/probe"
)

// newProber returns the prober, whose results wake the pods' workers.
func newProber(k *Kubelet) *probe.Prober {
	p := probe.New(probe.Config{
		Exec:  k.cfg.Runtime,
		Count: k.metrics.probe,
		Log:   k.log,
		Since: time.Now(),
		Event: func(pod *corev1.Pod, container, eventType, reason, message string) {
			k.containerEvent(pod, container, eventType, reason, message)
		},
	})
	p.OnChange(k.wake)
	return p
}

// observed takes over a new observation of the runtime and lets the prober
// follow it, so that a report made afterwards knows its results.
func (w *worker) observed(pod *corev1.Pod, rt *podRuntime) {
	w.state.runtime = rt
	w.share(rt)
	w.noteEnds(pod, rt)
	if hasProbes(pod) {
		w.k.probes.Sync(pod, w.report(pod))
	}
}

func hasProbes(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].LivenessProbe != nil || list[i].ReadinessProbe != nil || list[i].StartupProbe != nil {
				return true
			}
		}
	}
	return false
}
