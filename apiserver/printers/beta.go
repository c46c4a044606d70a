package printers

import (
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

// betaTables are those of kinds that have no GA version.
func betaTables() map[schema.GroupVersionResource]*registry.Table {
	return map[schema.GroupVersionResource]*registry.Table{
		coordinationv1beta1.SchemeGroupVersion.WithResource("leasecandidates"): table(columns{
			name(),
			text("LeaseName", doc(coordinationv1beta1.LeaseCandidateSpec{}, "leaseName")),
			text("BinaryVersion", doc(coordinationv1beta1.LeaseCandidateSpec{}, "binaryVersion")),
			text("EmulationVersion", doc(coordinationv1beta1.LeaseCandidateSpec{}, "emulationVersion")),
			age(),
		}, func(c *coordinationv1beta1.LeaseCandidate) []any {
			return []any{c.Name, c.Spec.LeaseName, c.Spec.BinaryVersion, c.Spec.EmulationVersion, old(c)}
		}),
		schedulingv1beta1.SchemeGroupVersion.WithResource("podgroups"): table(columns{
			name(),
			text("Policy", doc(schedulingv1beta1.PodGroupSpec{}, "schedulingPolicy")),
			text("Workload", "Name of the referenced Workload object"),
			text("Status", "Status of the PodGroup"),
			age(),
		}, podGroup),
		schedulingv1beta1.SchemeGroupVersion.WithResource("workloads"): table(columns{name(), age()},
			func(w *schedulingv1beta1.Workload) []any { return []any{w.Name, old(w)} }),
	}
}

func podGroup(g *schedulingv1beta1.PodGroup) []any {
	policy, workload, status := "Basic", "<none>", "Pending"
	if g.Spec.SchedulingPolicy.Gang != nil {
		policy = "Gang"
	}
	if ref := g.Spec.WorkloadRef; ref != nil {
		workload = ref.WorkloadName
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, "PodGroupInitiallyScheduled"); c != nil {
		status = "Unschedulable"
		if c.Status == metav1.ConditionTrue {
			status = "Scheduled"
		}
	}
	if c := meta.FindStatusCondition(g.Status.Conditions, "DisruptionTarget"); c != nil {
		status = c.Reason
	}
	return []any{g.Name, policy, workload, status, old(g)}
}

func componentStatus(s *corev1.ComponentStatus) []any {
	for _, c := range s.Conditions {
		if c.Type != corev1.ComponentHealthy {
			continue
		}
		status := "Unhealthy"
		if c.Status == corev1.ConditionTrue {
			status = "Healthy"
		}
		return []any{s.Name, status, c.Message, c.Error}
	}
	return []any{s.Name, "Unknown", "", ""}
}
