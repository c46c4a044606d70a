package defaultpreemption

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/scheduler"
)

// A candidate is a node that fits the pod once its victims are gone.
type candidate struct {
	node       string
	victims    []*scheduler.PodInfo // most important first
	violations int                  // of disruption budgets
}

// dryRun finds the least set of pods whose removal makes room on the node: it
// removes all of lower priority, then puts them back one by one, first those whose removal
// would violate a disruption budget, then by importance, and keeps those for which there is
// no room.
func (pl *plugin) dryRun(state *scheduler.CycleState, p *scheduler.PodInfo, on *scheduler.NodeInfo, budgets []budget) (*candidate, *scheduler.Status) {
	node, state := on.Clone(), state.Clone()
	var lower []*scheduler.PodInfo
	for _, other := range on.Pods {
		if other.Priority < p.Priority {
			lower = append(lower, other)
		}
	}
	if len(lower) == 0 {
		return nil, noVictims
	}
	for _, v := range lower {
		node.RemovePod(v.UID())
		if st := pl.f.RunRemovePod(state, p, v, node); !st.IsSuccess() {
			return nil, st
		}
	}
	if st := pl.f.RunFilterWithNominated(state, p, node); !st.IsSuccess() {
		return nil, st
	}
	slices.SortFunc(lower, moreImportant)
	violating, rest := split(lower, budgets)
	c := &candidate{node: on.Node.Name}
	reprieve := func(v *scheduler.PodInfo) (bool, *scheduler.Status) {
		node.AddPod(v)
		if st := pl.f.RunAddPod(state, p, v, node); !st.IsSuccess() {
			return false, st
		}
		if pl.f.RunFilterWithNominated(state, p, node).IsSuccess() {
			return true, nil
		}
		node.RemovePod(v.UID())
		if st := pl.f.RunRemovePod(state, p, v, node); !st.IsSuccess() {
			return false, st
		}
		c.victims = append(c.victims, v)
		return false, nil
	}
	for i, v := range append(violating, rest...) {
		spared, st := reprieve(v)
		if !st.IsSuccess() {
			return nil, st
		}
		if !spared && i < len(violating) {
			c.violations++
		}
	}
	if len(c.victims) == 0 {
		return nil, noVictims
	}
	slices.SortFunc(c.victims, moreImportant)
	return c, nil
}

// moreImportant orders by priority, then by the time since when a pod runs.
func moreImportant(a, b *scheduler.PodInfo) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), startTime(a.Pod).Compare(startTime(b.Pod)))
}

// startTime returns when the kubelet took the pod, now if it has not yet.
func startTime(pod *v1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return time.Now()
}

// A budget is a PodDisruptionBudget with its selector parsed.
type budget struct {
	*policyv1.PodDisruptionBudget
	selector labels.Selector
}

func (pl *plugin) budgets() ([]budget, error) {
	if pl.pdbs == nil {
		return nil, nil
	}
	list, err := pl.pdbs.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	out := make([]budget, 0, len(list))
	for _, pdb := range list {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil || selector.Empty() {
			continue // such a budget matches nothing
		}
		out = append(out, budget{pdb, selector})
	}
	return out, nil
}

// split returns the pods whose disruption violates a budget, and the others, each in the same order.
func split(pods []*scheduler.PodInfo, budgets []budget) (violating, rest []*scheduler.PodInfo) {
	allowed := make([]int32, len(budgets))
	for i := range budgets {
		allowed[i] = budgets[i].Status.DisruptionsAllowed
	}
	for _, p := range pods {
		violates := false
		for i := range budgets {
			b := &budgets[i]
			if len(p.Pod.Labels) == 0 || b.Namespace != p.Pod.Namespace || !b.selector.Matches(labels.Set(p.Pod.Labels)) {
				continue
			}
			if _, counted := b.Status.DisruptedPods[p.Pod.Name]; counted {
				continue // its disruption is accounted for already
			}
			if allowed[i]--; allowed[i] < 0 {
				violates = true
			}
		}
		if violates {
			violating = append(violating, p)
		} else {
			rest = append(rest, p)
		}
	}
	return violating, rest
}
