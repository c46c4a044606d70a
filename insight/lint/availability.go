package lint

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/insight"
)

// availabilityRules: one pod, one node or one deployment may go at any time.
func availabilityRules() []Rule {
	return []Rule{
		on("replicas", Warning, "With one replica every restart and every drained node is an outage.", func(s *Set, d *appsv1.Deployment) []Finding {
			if d.Spec.Replicas != nil && *d.Spec.Replicas != 1 || !s.fronted(d.Namespace, d.Spec.Template.Labels) || s.scaled("Deployment", d.Name) {
				return nil
			}
			return []Finding{{What: "has one replica and is behind a Service", Fix: "spec:\n  replicas: 2\n"}}
		}),
		on("disruption-budget", Advice, "Without a budget all pods may be evicted at once when nodes are drained.", func(s *Set, d *appsv1.Deployment) []Finding {
			if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 || s.budget(d.Namespace, d.Spec.Template.Labels) != nil {
				return nil
			}
			return []Finding{{What: fmt.Sprintf("has %d replicas and no PodDisruptionBudget", *d.Spec.Replicas), Fix: fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: %s\nspec:\n  maxUnavailable: 1\n  selector:\n    matchLabels:\n%s", d.Name, labelLines(d.Spec.Selector, "      "))}}
		}),
		on("budget-blocks", Error, "Nodes cannot be drained: neither upgrades nor repairs go on.", func(s *Set, b *policyv1.PodDisruptionBudget) []Finding {
			if b.Spec.MaxUnavailable != nil && (b.Spec.MaxUnavailable.String() == "0" || b.Spec.MaxUnavailable.String() == "0%") {
				return []Finding{{What: "allows no pod to be evicted: maxUnavailable is 0", Fix: "spec:\n  maxUnavailable: 1\n"}}
			}
			if b.Spec.MinAvailable == nil {
				return nil
			}
			if b.Spec.MinAvailable.String() == "100%" {
				return []Finding{{What: "allows no pod to be evicted: minAvailable is 100%", Fix: "spec:\n  minAvailable: null\n  maxUnavailable: 1\n"}}
			}
			sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil {
				return nil
			}
			for _, d := range all[*appsv1.Deployment](s) {
				if d.Namespace == b.Namespace && sel.Matches(labels.Set(d.Spec.Template.Labels)) && int32(b.Spec.MinAvailable.IntValue()) >= replicas(d.Spec.Replicas) && b.Spec.MinAvailable.IntValue() > 0 {
					return []Finding{{What: fmt.Sprintf("allows no pod to be evicted: minAvailable %s of the %d replicas of Deployment %s", b.Spec.MinAvailable, replicas(d.Spec.Replicas), d.Name), Fix: "spec:\n  minAvailable: null\n  maxUnavailable: 1\n"}}
				}
			}
			return nil
		}),
		on("spread", Advice, "Replicas that share a node or a zone fall together.", func(_ *Set, d *appsv1.Deployment) []Finding {
			spec := d.Spec.Template.Spec
			if replicas(d.Spec.Replicas) < 3 || len(spec.TopologySpreadConstraints) > 0 || spec.Affinity != nil && spec.Affinity.PodAntiAffinity != nil {
				return nil
			}
			return []Finding{{What: fmt.Sprintf("its %d replicas may all be on one node", replicas(d.Spec.Replicas)), Fix: under([]string{"spec", "template", "spec"}, "topologySpreadConstraints:\n- maxSkew: 1\n  topologyKey: kubernetes.io/hostname\n  whenUnsatisfiable: ScheduleAnyway\n  labelSelector:\n    matchLabels:\n"+labelLines(d.Spec.Selector, "      "))}}
		}),
		on("recreate", Warning, "All old pods end before new ones start: every rollout is an outage.", func(s *Set, d *appsv1.Deployment) []Finding {
			if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || !s.fronted(d.Namespace, d.Spec.Template.Labels) || claims(&d.Spec.Template.Spec) {
				return nil
			}
			return []Finding{{What: "is replaced at once (strategy Recreate)", Fix: "spec:\n  strategy:\n    type: RollingUpdate\n    rollingUpdate:\n      maxUnavailable: 0\n      maxSurge: 1\n"}}
		}),
		on("shared-claim", Error, "A volume that one node at a time may mount keeps the other replicas from starting on other nodes, and every rollout from ending.", func(s *Set, d *appsv1.Deployment) []Finding {
			if replicas(d.Spec.Replicas) < 2 {
				return nil
			}
			for _, v := range d.Spec.Template.Spec.Volumes {
				if v.PersistentVolumeClaim == nil {
					continue
				}
				for _, c := range all[*corev1.PersistentVolumeClaim](s) {
					if c.Name == v.PersistentVolumeClaim.ClaimName && c.Namespace == d.Namespace && len(c.Spec.AccessModes) == 1 && (c.Spec.AccessModes[0] == corev1.ReadWriteOnce || c.Spec.AccessModes[0] == corev1.ReadWriteOncePod) {
						return []Finding{{What: fmt.Sprintf("its %d replicas share claim %s, which is %s", replicas(d.Spec.Replicas), c.Name, c.Spec.AccessModes[0]), Fix: "# a StatefulSet with volumeClaimTemplates gives each replica a volume of its own\nkind: StatefulSet\n"}}
					}
				}
			}
			return nil
		}),
		onWorkload("bare-pod", Advice, "A pod that nothing has made is not made again when its node fails.", func(w workload) *Finding {
			p, ok := w.object.(*corev1.Pod)
			if !ok || !serves(p) || metav1.GetControllerOf(p) != nil {
				return nil
			}
			return &Finding{What: "is a bare pod", Fix: "apiVersion: apps/v1\nkind: Deployment\n"}
		}),
	}
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func claims(spec *corev1.PodSpec) bool {
	for _, v := range spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			return true
		}
	}
	return false
}

// fronted reports that a Service of the set selects the pods.
func fronted(w workload) bool { return w.set.fronted(w.object.GetNamespace(), w.template.Labels) }

func (s *Set) fronted(namespace string, set map[string]string) bool {
	for _, svc := range all[*corev1.Service](s) {
		if svc.Namespace == namespace && len(svc.Spec.Selector) > 0 && labels.SelectorFromSet(svc.Spec.Selector).Matches(labels.Set(set)) {
			return true
		}
	}
	return false
}

func (s *Set) budget(namespace string, set map[string]string) *policyv1.PodDisruptionBudget {
	for _, b := range all[*policyv1.PodDisruptionBudget](s) {
		sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == namespace && !sel.Empty() && sel.Matches(labels.Set(set)) {
			return b
		}
	}
	return nil
}

// all are the objects of a kind.
func all[T insight.Object](s *Set) []T {
	var out []T
	for _, o := range s.Objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
