package interpodaffinity

import (
	"context"

	"github.com/periplus/periplus/scheduler"
)

// weights are sums of term weights by domain.
type weights map[string]map[string]int64

func (w weights) add(n *scheduler.NodeInfo, t *scheduler.AffinityTerm, by int64) {
	value, ok := n.Node.Labels[t.TopologyKey]
	if !ok || by == 0 {
		return
	}
	m := w[t.TopologyKey]
	if m == nil {
		m = map[string]int64{}
		w[t.TopologyKey] = m
	}
	m[value] += by
}

// PreScore adds up weights: of the pod's preferred terms for the pods that they match,
// and of the terms of those pods that match the pod.
func (pl *plugin) PreScore(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, _ []*scheduler.NodeInfo) *scheduler.Status {
	s := pl.f.Snapshot()
	own := p.Affinity != nil && len(p.Affinity.Preferred)+len(p.Affinity.PreferredAnti) > 0
	if !own && (s.WithAffinity == 0 || pl.args.IgnorePreferredTermsOfExistingPods && pl.args.HardPodAffinityWeight == 0) {
		return skip
	}
	w := weights{}
	for _, n := range s.Nodes {
		pods := n.WithAffinity
		if own {
			pods = n.Pods
		}
		for _, other := range pods {
			pl.weigh(w, p, other, n)
		}
	}
	if len(w) == 0 {
		return skip
	}
	state.Set(pl.score, w)
	return nil
}

func (pl *plugin) weigh(w weights, p, other *scheduler.PodInfo, n *scheduler.NodeInfo) {
	if a := p.Affinity; a != nil {
		for i := range a.Preferred {
			if t := &a.Preferred[i]; t.Matches(other.Pod, pl.labelsOf) {
				w.add(n, &t.AffinityTerm, int64(t.Weight))
			}
		}
		for i := range a.PreferredAnti {
			if t := &a.PreferredAnti[i]; t.Matches(other.Pod, pl.labelsOf) {
				w.add(n, &t.AffinityTerm, -int64(t.Weight))
			}
		}
	}
	a := other.Affinity
	if a == nil {
		return
	}
	for i := range a.Required {
		if t := &a.Required[i]; t.Matches(p.Pod, pl.labelsOf) {
			w.add(n, t, pl.args.HardPodAffinityWeight)
		}
	}
	if pl.args.IgnorePreferredTermsOfExistingPods {
		return
	}
	for i := range a.Preferred {
		if t := &a.Preferred[i]; t.Matches(p.Pod, pl.labelsOf) {
			w.add(n, &t.AffinityTerm, int64(t.Weight))
		}
	}
	for i := range a.PreferredAnti {
		if t := &a.PreferredAnti[i]; t.Matches(p.Pod, pl.labelsOf) {
			w.add(n, &t.AffinityTerm, -int64(t.Weight))
		}
	}
}

func (pl *plugin) Score(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	w, _ := state.Get(pl.score).(weights)
	var sum int64
	for key, values := range w {
		if value, ok := n.Node.Labels[key]; ok {
			sum += values[value]
		}
	}
	return sum, nil
}

// Normalize spreads lowest to highest over the whole range; sums may be negative.
func (*plugin) Normalize(_ *scheduler.CycleState, _ *scheduler.PodInfo, _ []*scheduler.NodeInfo, scores []int64) *scheduler.Status {
	if len(scores) == 0 {
		return nil
	}
	lowest, highest := scores[0], scores[0]
	for _, s := range scores {
		lowest, highest = min(lowest, s), max(highest, s)
	}
	for i, s := range scores {
		scores[i] = 0
		if highest > lowest {
			scores[i] = int64(float64(scheduler.MaxNodeScore) * (float64(s-lowest) / float64(highest-lowest)))
		}
	}
	return nil
}
