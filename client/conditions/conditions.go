package conditions

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Pod returns the condition of the given type, or nil. It belongs to st.
func Pod(st *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range st.Conditions {
		if st.Conditions[i].Type == kind {
			return &st.Conditions[i]
		}
	}
	return nil
}

// PodReady says whether the pod's Ready condition is true.
func PodReady(p *corev1.Pod) bool {
	c := Pod(&p.Status, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PodGates is the Ready condition, without its type, of a pod all of whose containers
// are ready: its readiness gates decide.
func PodGates(p *corev1.Pod) corev1.PodCondition {
	var missing []string
	for _, gate := range p.Spec.ReadinessGates {
		switch c := Pod(&p.Status, gate.ConditionType); {
		case c == nil:
			missing = append(missing, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			missing = append(missing, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	if len(missing) > 0 {
		return corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: strings.Join(missing, ", ")}
	}
	return corev1.PodCondition{Status: corev1.ConditionTrue}
}

// Node returns the condition of the given type, or nil. It belongs to st.
func Node(st *corev1.NodeStatus, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range st.Conditions {
		if st.Conditions[i].Type == kind {
			return &st.Conditions[i]
		}
	}
	return nil
}

// NodeReady says whether the node's Ready condition is true; a node that was never
// heard of is not.
func NodeReady(n *corev1.Node) bool {
	c := Node(&n.Status, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}
