package podtopologyspread

import (
	"context"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// preferences is what Score looks at.
type preferences struct {
	constraints []constraint
	columns     []column     // per constraint
	counts      [][]int      // matching pods by domain, per constraint; nil for the hostname
	weights     []float64    // per constraint
	ignored     map[int]bool // nodes without all labels, by index
	namespace   string
}

// PreScore counts the matching pods in the domains that the feasible nodes have. A
// constraint over few domains weighs less, so that its greater counts do not drown the others.
func (pl *plugin) PreScore(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, nodes []*scheduler.NodeInfo) *scheduler.Status {
	if len(p.Pod.Spec.TopologySpreadConstraints) == 0 {
		return skip
	}
	cs, err := parse(p.Pod, v1.ScheduleAnyway)
	if err != nil {
		return scheduler.ErrorStatus(Name, err)
	}
	if len(cs) == 0 {
		return skip
	}
	all := pl.f.Snapshot()
	s := &preferences{constraints: cs, columns: pl.layouts.get(p.Pod, v1.ScheduleAnyway, cs, all), ignored: map[int]bool{}, namespace: p.Pod.Namespace}
	for _, n := range nodes {
		for i := range cs {
			if s.columns[i].domain[n.Index] < 0 {
				s.ignored[n.Index] = true
			}
		}
	}
	for i := range cs {
		size := len(nodes) - len(s.ignored)
		var counts []int // of the hostname, Score counts on the node itself
		if cs[i].key != v1.LabelHostname {
			counts = s.columns[i].count(&cs[i], s.namespace, all)
			seen := make([]bool, len(counts))
			size = 0
			for _, n := range nodes {
				if id := s.columns[i].domain[n.Index]; !s.ignored[n.Index] && !seen[id] {
					seen[id] = true
					size++
				}
			}
		}
		s.counts = append(s.counts, counts)
		s.weights = append(s.weights, math.Log(float64(size+2)))
	}
	state.Set(pl.score, s)
	return nil
}

// Score is high where many pods of the group are; Normalize turns it around.
func (pl *plugin) Score(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	s, ok := state.Get(pl.score).(*preferences)
	if !ok || s.ignored[n.Index] {
		return 0, nil
	}
	var sum float64
	for i := range s.constraints {
		c := &s.constraints[i]
		var count int
		if s.counts[i] == nil {
			count = matching(n.Pods, c.selector, s.namespace)
		} else {
			count = s.counts[i][s.columns[i].domain[n.Index]]
		}
		// maxSkew waters the differences down.
		sum += float64(count)*s.weights[i] + float64(c.maxSkew-1)
	}
	return int64(math.Round(sum)), nil
}

func (pl *plugin) Normalize(state *scheduler.CycleState, _ *scheduler.PodInfo, nodes []*scheduler.NodeInfo, scores []int64) *scheduler.Status {
	s, ok := state.Get(pl.score).(*preferences)
	if !ok {
		return nil
	}
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	for i, n := range nodes {
		if !s.ignored[n.Index] {
			lowest, highest = min(lowest, scores[i]), max(highest, scores[i])
		}
	}
	for i, n := range nodes {
		switch {
		case s.ignored[n.Index]:
			scores[i] = 0
		case highest == 0:
			scores[i] = scheduler.MaxNodeScore
		default:
			scores[i] = scheduler.MaxNodeScore * (highest + lowest - scores[i]) / highest
		}
	}
	return nil
}
