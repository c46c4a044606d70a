package podtopologyspread

import (
	"context"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "PodTopologySpread"

type plugin struct {
	f             *scheduler.Framework
	layouts       layouts // scheduling goroutine only
	filter, score scheduler.Slot
}

var (
	_ scheduler.PreFilterPlugin    = (*plugin)(nil)
	_ scheduler.PreFilterExtension = (*plugin)(nil)
	_ scheduler.FilterPlugin       = (*plugin)(nil)
	_ scheduler.PreScorePlugin     = (*plugin)(nil)
	_ scheduler.NormalizePlugin    = (*plugin)(nil)
	_ scheduler.BatchPlugin        = (*plugin)(nil)
	_ scheduler.EventPlugin        = (*plugin)(nil)
)

var (
	skewed  = scheduler.NewStatus(Name, scheduler.Unschedulable, "node(s) didn't match pod topology spread constraints")
	noLabel = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't match pod topology spread constraints (missing required label)")
	skip    = scheduler.NewStatus(Name, scheduler.Skip)
)

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) {
	return &plugin{f: f, filter: f.NewSlot(), score: f.NewSlot()}, nil
}

func (*plugin) Name() string { return Name }

// domains is what Filter looks at.
type domains struct {
	constraints []constraint
	columns     []column // per constraint
	counts      [][]int  // matching pods by domain, per constraint
	lowest      []int    // the least of counts, -1 when it must be looked for
}

var _ scheduler.Cloner = (*domains)(nil)

func (d *domains) Clone() any {
	c := &domains{constraints: d.constraints, columns: d.columns, lowest: slices.Clone(d.lowest)}
	for _, counts := range d.counts {
		c.counts = append(c.counts, slices.Clone(counts))
	}
	return c
}

// PreFilter counts the matching pods of each domain.
func (pl *plugin) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	if len(p.Pod.Spec.TopologySpreadConstraints) == 0 {
		return nil, skip
	}
	cs, err := parse(p.Pod, v1.DoNotSchedule)
	if err != nil {
		return nil, scheduler.ErrorStatus(Name, err)
	}
	if len(cs) == 0 {
		return nil, skip
	}
	s := pl.f.Snapshot()
	d := &domains{constraints: cs, columns: pl.layouts.get(p.Pod, v1.DoNotSchedule, cs, s)}
	for i := range cs {
		d.counts = append(d.counts, d.columns[i].count(&cs[i], p.Pod.Namespace, s))
		d.lowest = append(d.lowest, -1)
	}
	state.Set(pl.filter, d)
	return nil, nil
}

func (pl *plugin) AddPod(state *scheduler.CycleState, p, other *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	pl.update(state, p, other, n, 1)
	return nil
}

func (pl *plugin) RemovePod(state *scheduler.CycleState, p, other *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	pl.update(state, p, other, n, -1)
	return nil
}

func (pl *plugin) update(state *scheduler.CycleState, p, other *scheduler.PodInfo, n *scheduler.NodeInfo, by int) {
	d, ok := state.Get(pl.filter).(*domains)
	if !ok {
		return
	}
	for i := range d.constraints {
		c, col := &d.constraints[i], &d.columns[i]
		if col.counted[n.Index] && selects(other.Pod, c.selector, p.Pod.Namespace) {
			d.counts[i][col.domain[n.Index]] += by
			d.lowest[i] = -1
		}
	}
}

// least returns the least count of any domain; 0 while there are fewer than minDomains.
func (d *domains) least(i int) int {
	if d.columns[i].domains < d.constraints[i].minDomains {
		return 0
	}
	if d.lowest[i] < 0 {
		least := math.MaxInt
		for id, n := range d.counts[i] {
			if d.columns[i].present[id] {
				least = min(least, n)
			}
		}
		d.lowest[i] = least
	}
	return d.lowest[i]
}

func (pl *plugin) Filter(state *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	d, ok := state.Get(pl.filter).(*domains)
	if !ok {
		return nil
	}
	for i := range d.constraints {
		c := &d.constraints[i]
		id := d.columns[i].domain[n.Index]
		if id < 0 {
			return noLabel
		}
		count := d.counts[i][id]
		if c.matchesSelf {
			count++
		}
		if count-d.least(i) > c.maxSkew {
			return skewed
		}
	}
	return nil
}

// Same: pods without constraints do not concern this plug-in.
func (*plugin) Same(a, b *scheduler.PodInfo) bool {
	return len(a.Pod.Spec.TopologySpreadConstraints) == 0 && len(b.Pod.Spec.TopologySpreadConstraints) == 0
}

func (pl *plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.AssignedPod, Action: scheduler.Add | scheduler.Delete | scheduler.UpdatePodLabel},
			Worth: podChanged,
		},
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.PendingPod, Action: scheduler.UpdatePodLabel},
			Worth: scheduler.SamePod,
		},
		{Event: scheduler.ClusterEvent{
			Resource: scheduler.Node, Action: scheduler.Add | scheduler.Delete | scheduler.UpdateNodeLabel | scheduler.UpdateNodeTaint,
		}},
	}
}

// podChanged reports whether a pod that came, went or changed its labels belongs to
// the group of one of p's constraints.
func podChanged(p *scheduler.PodInfo, old, new any) bool {
	cs, err := parse(p.Pod, v1.DoNotSchedule)
	if err != nil {
		return true
	}
	in := func(pod *v1.Pod, c *constraint) bool {
		return pod != nil && pod.Namespace == p.Pod.Namespace && c.selector.Matches(labels.Set(pod.Labels))
	}
	was, is := scheduler.AsPod(old), scheduler.AsPod(new)
	for i := range cs {
		if in(was, &cs[i]) != in(is, &cs[i]) {
			return true
		}
	}
	return false
}
