package why

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// initRules: the containers that must end before the pod starts do not, or fail.
func initRules() []Rule {
	return []Rule{
		onContainer("init-failing", "an init container ends with an error", func(c *container) *insight.Finding {
			t := c.failed()
			if !c.init || t == nil {
				return nil
			}
			f := &insight.Finding{Level: insight.Sign, What: fmt.Sprintf("init container %s ends with exit code %d, so that the pod cannot start", c.spec.Name, t.ExitCode), Evidence: append([]string{c.endLine(t)}, c.tail(5)...), Mend: []insight.Mend{c.logs()}}
			return f
		}),
		onContainer("init-waiting", "an init container does not end", func(c *container) *insight.Finding {
			r := c.status.State.Running
			if !c.init || r == nil || c.s.Now.Sub(r.StartedAt.Time) < patience {
				return nil
			}
			return &insight.Finding{Level: insight.Sign, What: fmt.Sprintf("init container %s runs since %s and does not end, so that the pod cannot start", c.spec.Name, c.s.Age(r.StartedAt.Time)), Evidence: append([]string{fmt.Sprintf("spec: it runs %q", append(append([]string{}, c.spec.Command...), c.spec.Args...))}, c.tail(5)...), Mend: []insight.Mend{c.logs()}}
		}),
	}
}

// podRules: what happens to a pod as a whole.
func podRules() []Rule {
	return []Rule{
		on("pod-evicted", "the node was short of something and evicted the pod", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.Status.Reason != "Evicted" {
				return nil
			}
			return one(&insight.Finding{What: fmt.Sprintf("node %s evicted the pod: %s", p.Spec.NodeName, p.Status.Message), Why: "Pods that use more than they requested go first.",
				Evidence: append([]string{"status: reason Evicted"}, eventLines(s, p, "Evicted")...),
				Mend:     []insight.Mend{insight.Do("how is the node?", "peri why node/"+p.Spec.NodeName), insight.Deleted("", "v1", "pods", insight.RefOf(p), "removes what is left of it")}})
		}),
		on("pod-preempted", "the pod had to make room for a more important one", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			c := conditions.Pod(&p.Status, corev1.DisruptionTarget)
			if c == nil || c.Status != corev1.ConditionTrue || c.Reason != "PreemptionByScheduler" {
				return nil
			}
			return one(&insight.Finding{What: "the pod had to make room for a more important one", Evidence: append([]string{"status: " + c.Message}, eventLines(s, p, "Preempted")...)})
		}),
		on("pod-deadline", "the pod ran longer than activeDeadlineSeconds", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.Status.Reason != "DeadlineExceeded" {
				return nil
			}
			return one(&insight.Finding{What: "the pod ran longer than its activeDeadlineSeconds", Evidence: []string{"status: " + p.Status.Message}, Mend: []insight.Mend{workloadOf(s, p).edit("allow more time")}})
		}),
		on("pod-refused", "the node refused the pod", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			switch p.Status.Reason {
			case "OutOfcpu", "OutOfmemory", "OutOfpods", "NodePorts", "NodeAffinity", "NodeName", "UnexpectedAdmissionError", "Terminated", "NodeShutdown", "UnsupportedPodSpec", "TopologyAffinityError", "AppArmor":
			default:
				return nil
			}
			return one(&insight.Finding{What: fmt.Sprintf("node %s refused the pod (%s): %s", p.Spec.NodeName, p.Status.Reason, p.Status.Message), Evidence: []string{"status: reason " + p.Status.Reason},
				Mend: []insight.Mend{insight.Deleted("", "v1", "pods", insight.RefOf(p), "removes it; what made it makes another one")}})
		}),
		on("sandbox-failed", "the pod's network or namespaces cannot be made", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			e := s.LastEvent(p, "FailedCreatePodSandBox")
			if e == nil || p.Status.PodIP != "" || ended(p) {
				return nil
			}
			return one(&insight.Finding{What: fmt.Sprintf("node %s cannot make the pod's sandbox", p.Spec.NodeName), Why: "The pod network (CNI) or the container runtime of the node fails, not the pod.",
				Evidence: []string{shorten(s.EventLine(e))}, Mend: []insight.Mend{insight.Do("on the node: what does its log say?", "journalctl -u periplus -n 100")}})
		}),
		on("runtime-class-missing", "the pod's RuntimeClass does not exist", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.Spec.RuntimeClassName == nil || p.Status.Phase != corev1.PodPending {
				return nil
			}
			e := s.LastEvent(p, "FailedCreatePodSandBox", "Failed")
			if e == nil || p.Status.PodIP != "" {
				return nil
			}
			return one(&insight.Finding{Level: insight.Effect, What: fmt.Sprintf("the pod asks for RuntimeClass %q, and node %s cannot run it", *p.Spec.RuntimeClassName, p.Spec.NodeName), Evidence: []string{shorten(s.EventLine(e))}})
		}),
		on("pod-failed", "the pod has failed", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.Status.Phase != corev1.PodFailed || p.Status.Reason != "" || conditions.Pod(&p.Status, corev1.DisruptionTarget) != nil {
				return nil
			}
			f := &insight.Finding{Level: insight.Effect, What: "the pod has failed"}
			if p.Status.Message != "" {
				f.Evidence = []string{"status: " + p.Status.Message}
			}
			return one(f)
		}),
		on("pod-unknown", "nothing is known of the pod: its node is gone", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.Status.Phase != corev1.PodUnknown && p.Status.Reason != "NodeLost" {
				return nil
			}
			return one(&insight.Finding{Level: insight.Effect, What: fmt.Sprintf("nothing is known of the pod since node %s is gone", p.Spec.NodeName)})
		}),
	}
}
