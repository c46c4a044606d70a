package eviction

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// An Observation is how much of something there is, and how much is left.
type Observation struct{ Available, Capacity resource.Quantity }

// Observations are those of one moment. What is not observed is not judged.
type Observations map[Signal]Observation

// State is what a node has been short of, and since when. It is not for concurrent use.
type State struct {
	thresholds []Threshold
	transition time.Duration

	met       []Threshold                            // at the last look, their grace over
	first     map[key]time.Time                      // since when a threshold is met
	lastShort map[corev1.NodeConditionType]time.Time // when a condition was last observed
}

// key tells thresholds apart: one signal may have a soft and a hard one.
type key struct {
	signal Signal
	grace  time.Duration
}

func (t *Threshold) key() key { return key{t.Signal, t.Grace} }

// NewState returns the state of a node that was never short of anything. A
// condition stands for the transition period after it was last observed.
func NewState(thresholds []Threshold, transition time.Duration) *State {
	return &State{thresholds: thresholds, transition: transition, first: map[key]time.Time{}, lastShort: map[corev1.NodeConditionType]time.Time{}}
}

// Next takes new observations. conditions are those of the node that hold now, act
// the thresholds that were met for their grace period, in the order in which to deal
// with them.
func (s *State) Next(now time.Time, o Observations) (conditions []corev1.NodeConditionType, act []Threshold) {
	met := below(s.thresholds, o, false)
	for _, t := range below(s.met, o, true) { // not yet far enough above it
		if !slices.ContainsFunc(met, func(m Threshold) bool { return m.key() == t.key() }) {
			met = append(met, t)
		}
	}
	first := make(map[key]time.Time, len(met))
	for _, t := range met {
		since, ok := s.first[t.key()]
		if !ok {
			since = now
		}
		first[t.key()] = since
		s.lastShort[t.Signal.Condition()] = now
		if now.Sub(since) >= t.Grace {
			act = append(act, t)
		}
	}
	s.first, s.met = first, act
	for _, c := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		if at, ok := s.lastShort[c]; ok && now.Sub(at) < s.transition || ok && at.Equal(now) {
			conditions = append(conditions, c)
		}
	}
	act = slices.Clone(act)
	slices.SortStableFunc(act, func(a, b Threshold) int { return cmp.Compare(urgency(a), urgency(b)) })
	return conditions, act
}

// urgency: memory is dealt with first.
func urgency(t Threshold) int {
	if t.Signal.Resource() == corev1.ResourceMemory {
		return 0
	}
	return 1
}

// Relieved says whether enough is left of everything, minimum reclaim included.
func (s *State) Relieved(o Observations) bool { return len(below(s.thresholds, o, true)) == 0 }

// Short says whether any threshold is met, however long.
func (s *State) Short(o Observations) bool { return len(below(s.thresholds, o, false)) > 0 }

// below lists the thresholds of which less is left than their value, with the
// minimum reclaim added if reclaim says so.
func below(thresholds []Threshold, o Observations, reclaim bool) []Threshold {
	var out []Threshold
	for _, t := range thresholds {
		have, ok := o[t.Signal]
		if !ok {
			continue
		}
		want := t.Value.Of(have.Capacity)
		if reclaim && t.MinReclaim != nil {
			want.Add(t.MinReclaim.Of(have.Capacity))
		}
		if want.Cmp(have.Available) > 0 {
			out = append(out, t)
		}
	}
	return out
}
