package taintnodesbycondition

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

type plugin struct{}

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return "TaintNodesByCondition" }

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	node, ok := a.Object.(*corev1.Node)
	if !ok || a.Operation != admission.Create || a.Subresource != "" {
		return nil
	}
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].MatchTaint(&taint) {
			return nil
		}
	}
	node.Spec.Taints = append(node.Spec.Taints, taint)
	return nil
}
