package podtopologyspread

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/periplus/periplus/scheduler"
)

// A constraint is a topologySpreadConstraint, parsed.
type constraint struct {
	key           string
	maxSkew       int
	minDomains    int
	matchesSelf   bool // the selector selects the pod itself
	selector      labels.Selector
	honorAffinity bool // nodes that the pod's node affinity excludes do not count
	honorTaints   bool // nodes with taints that the pod does not tolerate do not count
}

func parse(pod *v1.Pod, action v1.UnsatisfiableConstraintAction) ([]constraint, error) {
	var out []constraint
	for i := range pod.Spec.TopologySpreadConstraints {
		c := &pod.Spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != action {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("topologySpreadConstraints: %w", err)
		}
		if selector, err = withMatchLabels(selector, c.MatchLabelKeys, pod.Labels); err != nil {
			return nil, fmt.Errorf("topologySpreadConstraints: matchLabelKeys: %w", err)
		}
		k := constraint{key: c.TopologyKey, maxSkew: int(c.MaxSkew), minDomains: 1, selector: selector, honorAffinity: true,
			matchesSelf: selector.Matches(labels.Set(pod.Labels))}
		if c.MinDomains != nil {
			k.minDomains = int(*c.MinDomains)
		}
		if c.NodeAffinityPolicy != nil {
			k.honorAffinity = *c.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor
		}
		if c.NodeTaintsPolicy != nil {
			k.honorTaints = *c.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor
		}
		out = append(out, k)
	}
	return out, nil
}

// withMatchLabels narrows selector to pods that have the same values for keys as the pod.
func withMatchLabels(selector labels.Selector, keys []string, pod labels.Set) (labels.Selector, error) {
	same := labels.Set{}
	for _, k := range keys {
		if v, ok := pod[k]; ok {
			same[k] = v
		}
	}
	if len(same) == 0 {
		return selector, nil
	}
	narrow, err := labels.ValidatedSelectorFromSet(same)
	if err != nil {
		return nil, err
	}
	requirements, selectable := narrow.Requirements()
	if !selectable {
		return selector, nil
	}
	return selector.Add(requirements...), nil
}

// nodeFilter says which nodes count for a pod's constraints.
type nodeFilter struct {
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []v1.Toleration
}

func newNodeFilter(pod *v1.Pod) nodeFilter {
	return nodeFilter{nodeaffinity.GetRequiredNodeAffinity(pod), pod.Spec.Tolerations}
}

func (f *nodeFilter) counts(c *constraint, n *scheduler.NodeInfo) bool {
	if c.honorAffinity {
		if match, _ := f.affinity.Match(n.Node); !match {
			return false
		}
	}
	if c.honorTaints && n.NoScheduleTaints {
		for i := range n.Node.Spec.Taints {
			t := &n.Node.Spec.Taints[i]
			if t.Effect != v1.TaintEffectPreferNoSchedule && !scheduler.Tolerates(f.tolerations, t) {
				return false
			}
		}
	}
	return true
}

// hasAll reports whether the node has the labels of all constraints.
func hasAll(n *scheduler.NodeInfo, cs []constraint) bool {
	for i := range cs {
		if _, ok := n.Node.Labels[cs[i].key]; !ok {
			return false
		}
	}
	return true
}

// matching counts the pods of the namespace on the node that the selector selects.
// Those that are going do not count.
func matching(pods []*scheduler.PodInfo, selector labels.Selector, namespace string) (count int) {
	if selector.Empty() {
		return 0
	}
	for _, p := range pods {
		if selects(p.Pod, selector, namespace) {
			count++
		}
	}
	return count
}

func selects(pod *v1.Pod, selector labels.Selector, namespace string) bool {
	return pod.DeletionTimestamp == nil && pod.Namespace == namespace && selector.Matches(labels.Set(pod.Labels))
}
