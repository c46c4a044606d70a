package scheduler

import (
	"context"
	"fmt"
	"slices"
)

// A scoreboard is the working memory for the scores of one cycle, reused by the next.
type scoreboard struct {
	raw   [][]int64 // by scorer, then by node: weighted after run
	total []int64   // by node
	fixed []int64   // by node: the part of total that came from normalised scores
}

// run fills the board with the scores of nodes.
func (b *scoreboard) run(ctx context.Context, f *Framework, state *CycleState, p *PodInfo, nodes []*NodeInfo) *Status {
	if s := f.runPreScore(ctx, state, p, nodes); !s.IsSuccess() {
		return s
	}
	b.total = resize(b.total, len(nodes))
	b.fixed = resize(b.fixed, len(nodes))
	clear(b.total)
	clear(b.fixed)
	for len(b.raw) < len(state.scorers) {
		b.raw = append(b.raw, nil)
	}
	for i := range state.scorers {
		sc := &state.scorers[i]
		b.raw[i] = resize(b.raw[i], len(nodes))
		raw := b.raw[i]
		for j, n := range nodes {
			score, s := sc.Score(state, p, n)
			if !s.IsSuccess() {
				return s
			}
			raw[j] = score
		}
		if sc.normalize != nil {
			if s := sc.normalize.Normalize(state, p, nodes, raw); !s.IsSuccess() {
				return s
			}
		}
		for j, score := range raw {
			if score < 0 || score > MaxNodeScore {
				return ErrorStatus(sc.name, fmt.Errorf("plug-in %s returned the score %d, allowed are 0 to %d", sc.name, score, MaxNodeScore))
			}
			raw[j] = score * sc.weight
			b.total[j] += raw[j]
			if sc.normalize != nil {
				b.fixed[j] += raw[j]
			}
		}
	}
	return nil
}

// rescore returns the score of one node whose normalised part is known.
func rescore(state *CycleState, p *PodInfo, node *NodeInfo, fixed int64) (int64, *Status) {
	total := fixed
	for i := range state.scorers {
		sc := &state.scorers[i]
		if sc.normalize != nil {
			continue
		}
		score, s := sc.Score(state, p, node)
		if !s.IsSuccess() {
			return 0, s
		}
		total += score * sc.weight
	}
	return total, nil
}

func (f *Framework) runPreScore(ctx context.Context, state *CycleState, p *PodInfo, nodes []*NodeInfo) *Status {
	var skipped []string
	for _, x := range f.preScores {
		s := x.PreScore(ctx, state, p, nodes)
		if s.IsSkip() {
			skipped = append(skipped, x.Name())
		} else if !s.IsSuccess() {
			return s
		}
	}
	state.scorers = f.scorers
	if len(skipped) > 0 {
		state.scorers = make([]scorer, 0, len(f.scorers))
		for _, x := range f.scorers {
			if !slices.Contains(skipped, x.name) {
				state.scorers = append(state.scorers, x)
			}
		}
	}
	return nil
}

func resize(s []int64, n int) []int64 {
	if cap(s) < n {
		return make([]int64, n)
	}
	return s[:n]
}

// Normalize spreads scores over 0..MaxNodeScore in proportion to the highest;
// reverse turns them around. All are 0, or MaxNodeScore when reversed, if the highest is 0.
func Normalize(scores []int64, reverse bool) {
	var highest int64
	for _, s := range scores {
		highest = max(highest, s)
	}
	for i, s := range scores {
		if highest > 0 {
			s = MaxNodeScore * s / highest
		}
		if reverse {
			s = MaxNodeScore - s
		}
		scores[i] = s
	}
}
