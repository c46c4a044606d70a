package defaulttolerationseconds

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

const seconds = int64(300)

type plugin struct{}

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return "DefaultTolerationSeconds" }

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Subresource != "" || a.Operation != admission.Create {
		return nil
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !tolerates(pod, key) {
			s := seconds
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &s,
			})
		}
	}
	return nil
}

// tolerates reports whether the pod says something about a NoExecute taint of that key.
func tolerates(p *corev1.Pod, key string) bool {
	for _, t := range p.Spec.Tolerations {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
