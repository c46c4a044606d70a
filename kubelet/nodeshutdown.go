package kubelet

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/kubelet/shutdown"
)

// newShutdown ends the pods when the machine goes down.
func newShutdown(k *Kubelet) *shutdown.Shutdown {
	return shutdown.New(shutdown.Config{
		Periods: k.cfg.ShutdownPeriods, Connect: k.cfg.Login, Log: k.log, Changed: k.node.Changed,
		Pods: func() []*corev1.Pod {
			var out []*corev1.Pod
			for _, w := range k.active() {
				if pod := w.admittedPod(); pod != nil {
					out = append(out, pod)
				}
			}
			return out
		},
		End: func(pod *corev1.Pod, seconds int64) <-chan struct{} {
			w := k.active()[pod.UID]
			if w == nil {
				none := make(chan struct{})
				close(none)
				return none
			}
			w.end(cause{phase: corev1.PodFailed, reason: shutdown.Reason, message: shutdown.Message, grace: &seconds,
				condition: &corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
					Reason: corev1.PodReasonTerminationByKubelet, Message: shutdown.Message, ObservedGeneration: pod.Generation}})
			return w.ended()
		},
	})
}
