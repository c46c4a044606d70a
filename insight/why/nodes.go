package why

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// nodeRules: a machine does not take or run pods.
func nodeRules() []Rule {
	return []Rule{
		on("node-gone", "the node's kubelet has not been heard of", func(s *insight.Snapshot, n *corev1.Node) []insight.Finding {
			c := conditions.Node(&n.Status, corev1.NodeReady)
			if c == nil || c.Status != corev1.ConditionUnknown {
				return nil
			}
			return one(&insight.Finding{Part: "ready", What: fmt.Sprintf("nothing has been heard of node %s for %s", n.Name, s.Age(c.LastHeartbeatTime.Time)), Why: "The machine is off, peri does not run on it, or it cannot reach the API server.",
				Evidence: []string{fmt.Sprintf("status: Ready is Unknown: %s: %s", c.Reason, c.Message)}, Mend: []insight.Mend{insight.Do("on the node: does it run?", "systemctl status periplus && journalctl -u periplus -n 100"),
					insight.Do("if the machine is gone for good", "peri kubectl delete node "+n.Name)}})
		}),
		on("node-network", "the pod network is not ready on the node", func(_ *insight.Snapshot, n *corev1.Node) []insight.Finding {
			if c := conditions.Node(&n.Status, corev1.NodeNetworkUnavailable); c != nil && c.Status == corev1.ConditionTrue {
				return one(&insight.Finding{Part: "ready", What: "the pod network is not ready on node " + n.Name, Evidence: []string{"status: NetworkUnavailable is True: " + c.Message}})
			}
			c := conditions.Node(&n.Status, corev1.NodeReady)
			if c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "NetworkPluginNotReady") && !strings.Contains(c.Message, "NetworkReady=false") {
				return nil
			}
			f := &insight.Finding{Part: "ready", What: "the pod network is not ready on node " + n.Name, Evidence: []string{"status: Ready is False: " + c.Message}}
			if n.Spec.PodCIDR == "" {
				f.Why = "The node has no range of pod addresses: the controller that gives it one does not run, or cluster-cidr is used up."
				f.Evidence = append(f.Evidence, "spec: podCIDR is empty")
			}
			return one(f)
		}),
		on("node-not-ready", "the node's kubelet says that it cannot run pods", func(_ *insight.Snapshot, n *corev1.Node) []insight.Finding {
			c := conditions.Node(&n.Status, corev1.NodeReady)
			if c == nil {
				return one(&insight.Finding{Part: "ready", What: "the kubelet of node " + n.Name + " has never reported", Mend: []insight.Mend{insight.Do("on the node: does it run?", "systemctl status periplus")}})
			}
			if c.Status != corev1.ConditionFalse {
				return nil
			}
			return one(&insight.Finding{Level: insight.Sign, Part: "ready", What: "the kubelet of node " + n.Name + " says that it cannot run pods", Evidence: []string{fmt.Sprintf("status: Ready is False: %s: %s", c.Reason, c.Message)},
				Mend: []insight.Mend{insight.Do("on the node: what does its log say?", "journalctl -u periplus -n 100")}})
		}),
		pressure("node-memory-pressure", "the node is short of memory", corev1.NodeMemoryPressure, "memory", "Pods are evicted, and new ones kept away, until there is some again.", insight.Do("what uses it?", "peri kubectl top pods -A --sort-by=memory")),
		pressure("node-disk-pressure", "the node's disk is nearly full", corev1.NodeDiskPressure, "disk space", "Images that nobody uses are removed, then pods evicted.", insight.Do("on the node: what fills it?", "du -xh --max-depth=2 /var/lib/periplus | sort -h | tail -20")),
		pressure("node-pid-pressure", "the node has nearly as many processes as it can have", corev1.NodePIDPressure, "process IDs", "A pod starts processes without end?", insight.Do("on the node: whose are they?", "ps -eo comm= | sort | uniq -c | sort -n | tail")),
		on("node-is-cordoned", "the node takes no new pods", func(_ *insight.Snapshot, n *corev1.Node) []insight.Finding {
			if !n.Spec.Unschedulable {
				return nil
			}
			return one(&insight.Finding{Part: "cordon", What: "node " + n.Name + " takes no new pods: it is cordoned", Evidence: []string{"spec: unschedulable is true"}, Mend: []insight.Mend{uncordon(n)}})
		}),
		on("node-tainted", "a taint keeps pods off the node", func(_ *insight.Snapshot, n *corev1.Node) []insight.Finding {
			var out []insight.Finding
			for _, t := range n.Spec.Taints {
				if strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Effect == corev1.TaintEffectPreferNoSchedule {
					continue
				}
				text := t.Key
				if t.Value != "" {
					text += "=" + t.Value
				}
				out = append(out, insight.Finding{Level: insight.Note, Part: "taint " + t.Key, What: fmt.Sprintf("the taint %s:%s keeps pods off node %s that do not tolerate it", text, t.Effect, n.Name), Mend: []insight.Mend{insight.Do("takes it away", fmt.Sprintf("peri kubectl taint node %s %s:%s-", n.Name, t.Key, t.Effect))}})
			}
			return out
		}),
	}
}

func pressure(name, summary string, t corev1.NodeConditionType, of, reason string, mend insight.Mend) Rule {
	return on(name, summary, func(s *insight.Snapshot, n *corev1.Node) []insight.Finding {
		c := conditions.Node(&n.Status, t)
		if c == nil || c.Status != corev1.ConditionTrue {
			return nil
		}
		return one(&insight.Finding{Part: string(t), What: fmt.Sprintf("node %s is short of %s", n.Name, of), Why: reason, Evidence: append([]string{fmt.Sprintf("status: %s is True: %s", t, c.Message)}, eventLines(s, n, "EvictionThresholdMet", "FreeDiskSpaceFailed", "ImageGCFailed")...), Mend: []insight.Mend{mend}})
	})
}
