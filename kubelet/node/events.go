package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// transitions names the events that tell of a condition's new status.
var transitions = []struct {
	kind      corev1.NodeConditionType
	yes, no   string
	otherwise string // for Unknown
}{
	{corev1.NodeMemoryPressure, "NodeHasInsufficientMemory", "NodeHasSufficientMemory", ""},
	{corev1.NodeDiskPressure, "NodeHasDiskPressure", "NodeHasNoDiskPressure", ""},
	{corev1.NodePIDPressure, "NodeHasInsufficientPID", "NodeHasSufficientPID", ""},
	{corev1.NodeReady, "NodeReady", "NodeNotReady", "NodeNotReady"},
}

// Event records an event about the node for others.
func (n *Node) Event(kind, reason, message string) { n.event(kind, reason, message) }

// event records an event about the node. Like upstream's its object has the
// node's name for a UID, which is where people's tools look for it.
func (n *Node) event(kind, reason, message string) {
	if n.cfg.Events == nil {
		return
	}
	n.cfg.Events.Event(&corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: n.cfg.Name, UID: types.UID(n.cfg.Name)}, kind, reason, message)
}

func (n *Node) statusEvent(reason string) {
	n.event(corev1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", n.cfg.Name, reason))
}

// tell records what the second status has news of.
func (n *Node) tell(before, after *corev1.NodeStatus) {
	if old := before.NodeInfo.BootID; old != "" && old != after.NodeInfo.BootID {
		n.event(corev1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", n.cfg.Name, after.NodeInfo.BootID))
	}
	for _, t := range transitions {
		now := conditionOf(after, t.kind)
		if now == conditionOf(before, t.kind) {
			continue
		}
		reason := t.otherwise
		switch now {
		case corev1.ConditionTrue:
			reason = t.yes
		case corev1.ConditionFalse:
			reason = t.no
		}
		if reason != "" {
			n.statusEvent(reason)
		}
	}
}
