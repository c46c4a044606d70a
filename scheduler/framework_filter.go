package scheduler

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// RunPreFilter runs the PreFilter plug-ins. The nodes are nil for all nodes; d gets
// the plug-ins that narrowed them or rejected the pod.
func (f *Framework) RunPreFilter(ctx context.Context, state *CycleState, p *PodInfo, d *Diagnosis) (sets.Set[string], *Status) {
	var nodes sets.Set[string]
	var narrowed, skipped []string
	for _, x := range f.preFilters {
		r, s := x.PreFilter(ctx, state, p)
		if s.IsSkip() {
			skipped = append(skipped, x.Name())
			continue
		}
		if !s.IsSuccess() {
			if s.IsRejected() {
				d.reject(s)
			}
			return nil, s
		}
		if r == nil || r.NodeNames == nil {
			continue
		}
		narrowed = append(narrowed, x.Name())
		if nodes == nil {
			nodes = r.NodeNames
		} else {
			nodes = nodes.Intersection(r.NodeNames)
		}
		if len(nodes) == 0 {
			d.Rejectors = narrowed
			slices.Sort(narrowed)
			message := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", narrowed)
			if len(narrowed) == 1 {
				message = "node(s) didn't satisfy plugin " + narrowed[0]
			}
			return nil, NewStatus("", UnschedulableAndUnresolvable, message)
		}
	}
	if nodes != nil {
		slices.Sort(narrowed)
		d.Rejectors = slices.Clone(narrowed)
		d.Absent = NewStatus("", UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", narrowed))
	}
	state.filters = f.filters
	if len(skipped) > 0 {
		state.filters = make([]FilterPlugin, 0, len(f.filters))
		for _, x := range f.filters {
			if !slices.Contains(skipped, x.Name()) {
				state.filters = append(state.filters, x)
			}
		}
	}
	return nodes, nil
}

// RunFilter returns the first verdict against the pod on the node.
func (f *Framework) RunFilter(state *CycleState, p *PodInfo, node *NodeInfo) *Status {
	for _, x := range state.filters {
		if s := x.Filter(state, p, node); !s.IsSuccess() {
			return s
		}
	}
	return nil
}

// RunFilterWithNominated is RunFilter with regard to pods nominated for the node:
// the pod must fit with those of its priority or above, and also without them, since
// they are not there yet and affinity to them must not count.
func (f *Framework) RunFilterWithNominated(state *CycleState, p *PodInfo, node *NodeInfo) *Status {
	nominated := f.NominatedPods(node.Node.Name)
	if len(nominated) > 0 {
		var with *NodeInfo
		withState := state
		for _, other := range nominated {
			if other.Priority < p.Priority || other.UID() == p.UID() {
				continue
			}
			if with == nil {
				with, withState = node.Clone(), state.Clone()
			}
			with.AddPod(other)
			if s := f.RunAddPod(withState, p, other, with); !s.IsSuccess() {
				return s
			}
		}
		if with != nil {
			if s := f.RunFilter(withState, p, with); !s.IsSuccess() {
				return s
			}
		}
	}
	return f.RunFilter(state, p, node)
}

// RunAddPod tells PreFilter state that other is on the node now.
func (f *Framework) RunAddPod(state *CycleState, p, other *PodInfo, node *NodeInfo) *Status {
	for _, x := range f.extensions {
		if !filterActive(state, x.filter) {
			continue
		}
		if s := x.AddPod(state, p, other, node); !s.IsSuccess() {
			return s
		}
	}
	return nil
}

// RunRemovePod tells PreFilter state that other is no longer on the node.
func (f *Framework) RunRemovePod(state *CycleState, p, other *PodInfo, node *NodeInfo) *Status {
	for _, x := range f.extensions {
		if !filterActive(state, x.filter) {
			continue
		}
		if s := x.RemovePod(state, p, other, node); !s.IsSuccess() {
			return s
		}
	}
	return nil
}

func filterActive(state *CycleState, name string) bool {
	return slices.ContainsFunc(state.filters, func(x FilterPlugin) bool { return x.Name() == name })
}

// RunPostFilter runs the PostFilter plug-ins until one succeeds and returns its
// nomination, nil to leave a nomination as it is.
func (f *Framework) RunPostFilter(ctx context.Context, state *CycleState, p *PodInfo, d *Diagnosis) (*PostFilterResult, *Status) {
	var result *PostFilterResult
	var reasons []string
	rejector := ""
	for _, x := range f.postFilters {
		r, s := x.PostFilter(ctx, state, p, d)
		switch {
		case s.IsSuccess():
			return r, s
		case s.Code() == UnschedulableAndUnresolvable:
			return r, s
		case !s.IsRejected():
			return nil, s
		}
		if r != nil {
			result = r
		}
		reasons = append(reasons, s.Reasons()...)
		rejector = x.Name()
	}
	return result, NewStatus(rejector, Unschedulable, reasons...)
}
