package podtopologyspread

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/periplus/periplus/scheduler"
)

// A layout says, for a set of constraints, in which domain each node is and whether it
// counts. It depends on Node objects alone and is kept until one changes.
type layout struct {
	pod     *v1.PodSpec // whose constraints, node affinity and tolerations it was made for
	action  v1.UnsatisfiableConstraintAction
	columns []column
}

// A column is the part of a layout for one constraint.
type column struct {
	domain  []int32 // by node index; -1 without the label
	counted []bool  // by node index
	present []bool  // by domain: it has a node that counts
	domains int     // number of those present
}

// layouts are those of the current epoch, the last used first.
type layouts struct {
	epoch uint64
	list  []*layout
}

const maxLayouts = 64

func (ls *layouts) get(pod *v1.Pod, action v1.UnsatisfiableConstraintAction, cs []constraint, s *scheduler.Snapshot) []column {
	if ls.epoch != s.Epoch() {
		ls.epoch, ls.list = s.Epoch(), nil
	}
	for i, l := range ls.list {
		if l.action == action && sameLayout(l.pod, &pod.Spec) {
			copy(ls.list[1:i+1], ls.list[:i])
			ls.list[0] = l
			return l.columns
		}
	}
	l := &layout{
		pod: &v1.PodSpec{
			TopologySpreadConstraints: pod.Spec.TopologySpreadConstraints,
			NodeSelector:              pod.Spec.NodeSelector,
			Affinity:                  pod.Spec.Affinity,
			Tolerations:               pod.Spec.Tolerations,
		},
		action: action, columns: newColumns(pod, cs, s),
	}
	if len(ls.list) < maxLayouts {
		ls.list = append(ls.list, nil)
	}
	copy(ls.list[1:], ls.list)
	ls.list[0] = l
	return l.columns
}

// sameLayout reports whether two pods have the same layout: selectors do not matter.
func sameLayout(a, b *v1.PodSpec) bool {
	return slices.EqualFunc(a.TopologySpreadConstraints, b.TopologySpreadConstraints, func(x, y v1.TopologySpreadConstraint) bool {
		return x.TopologyKey == y.TopologyKey && x.WhenUnsatisfiable == y.WhenUnsatisfiable &&
			policy(x.NodeAffinityPolicy) == policy(y.NodeAffinityPolicy) && policy(x.NodeTaintsPolicy) == policy(y.NodeTaintsPolicy)
	}) && equality.Semantic.DeepEqual(a.NodeSelector, b.NodeSelector) &&
		equality.Semantic.DeepEqual(nodeAffinity(a), nodeAffinity(b)) &&
		equality.Semantic.DeepEqual(a.Tolerations, b.Tolerations)
}

func policy(p *v1.NodeInclusionPolicy) v1.NodeInclusionPolicy {
	if p == nil {
		return ""
	}
	return *p
}

func nodeAffinity(s *v1.PodSpec) *v1.NodeSelector {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return nil
	}
	return s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func newColumns(pod *v1.Pod, cs []constraint, s *scheduler.Snapshot) []column {
	filter := newNodeFilter(pod)
	out := make([]column, len(cs))
	for i := range cs {
		col := column{domain: make([]int32, len(s.Nodes)), counted: make([]bool, len(s.Nodes))}
		ids := map[string]int32{}
		for k, n := range s.Nodes {
			value, ok := n.Node.Labels[cs[i].key]
			if !ok {
				col.domain[k] = -1
				continue
			}
			id, known := ids[value]
			if !known {
				id = int32(len(ids))
				ids[value] = id
				col.present = append(col.present, false)
			}
			col.domain[k] = id
			if hasAll(n, cs) && filter.counts(&cs[i], n) {
				col.counted[k] = true
				if !col.present[id] {
					col.present[id] = true
					col.domains++
				}
			}
		}
		out[i] = col
	}
	return out
}

// count returns the number of matching pods by domain.
func (col *column) count(c *constraint, namespace string, s *scheduler.Snapshot) []int {
	counts := make([]int, len(col.present))
	if c.selector.Empty() {
		return counts
	}
	for _, class := range s.Classes {
		if class.Terminating || !selects(class.Pod.Pod, c.selector, namespace) {
			continue
		}
		class.Nodes(s, func(n *scheduler.NodeInfo, pods int) {
			if col.counted[n.Index] {
				counts[col.domain[n.Index]] += pods
			}
		})
	}
	return counts
}
