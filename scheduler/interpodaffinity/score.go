package interpodaffinity

import (
	"context"

	"github.com/periplus/periplus/scheduler"
)

// weights are sums of term weights by domain.
type weights map[string]map[string]int64

func (w weights) add(n *scheduler.NodeInfo, key string, by int64) {
	value, ok := n.Node.Labels[key]
	if !ok || by == 0 {
		return
	}
	m := w[key]
	if m == nil {
		m = map[string]int64{}
		w[key] = m
	}
	m[value] += by
}

// PreScore adds up weights: of the pod's preferred terms for the pods that they match,
// and of the terms of those pods that match the pod.
func (pl *plugin) PreScore(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, _ []*scheduler.NodeInfo) *scheduler.Status {
	s := pl.f.Snapshot()
	own := p.Affinity != nil && len(p.Affinity.Preferred)+len(p.Affinity.PreferredAnti) > 0
	if !own && (s.Affine == 0 || pl.args.IgnorePreferredTermsOfExistingPods && pl.args.HardPodAffinityWeight == 0) {
		return skip
	}
	w := weights{}
	var terms []weightedTerm
	for _, class := range s.Classes {
		if !own && class.Pod.Affinity == nil {
			continue
		}
		if terms = pl.terms(p, &class.Pod, terms[:0]); len(terms) == 0 {
			continue
		}
		class.Nodes(s, func(n *scheduler.NodeInfo, pods int) {
			for _, t := range terms {
				w.add(n, t.key, t.weight*int64(pods))
			}
		})
	}
	if len(w) == 0 {
		return skip
	}
	state.Set(pl.score, w)
	return nil
}

// A weightedTerm gives weight to the domain, of key, that a pod is in.
type weightedTerm struct {
	key    string
	weight int64
}

// terms appends what a pod like other weighs for p.
func (pl *plugin) terms(p, other *scheduler.PodInfo, out []weightedTerm) []weightedTerm {
	preferred := func(a *scheduler.PodAffinity, matching *scheduler.PodInfo) {
		for i := range a.Preferred {
			if t := &a.Preferred[i]; t.Matches(matching.Pod, pl.labelsOf) {
				out = append(out, weightedTerm{t.TopologyKey, int64(t.Weight)})
			}
		}
		for i := range a.PreferredAnti {
			if t := &a.PreferredAnti[i]; t.Matches(matching.Pod, pl.labelsOf) {
				out = append(out, weightedTerm{t.TopologyKey, -int64(t.Weight)})
			}
		}
	}
	if p.Affinity != nil {
		preferred(p.Affinity, other)
	}
	if other.Affinity == nil {
		return out
	}
	for i := range other.Affinity.Required {
		if t := &other.Affinity.Required[i]; t.Matches(p.Pod, pl.labelsOf) {
			out = append(out, weightedTerm{t.TopologyKey, pl.args.HardPodAffinityWeight})
		}
	}
	if !pl.args.IgnorePreferredTermsOfExistingPods {
		preferred(other.Affinity, p)
	}
	return out
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
