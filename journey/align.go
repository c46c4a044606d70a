package journey

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Align orders the spans of journeys: by time, and where another machine's clock is
// still a little wrong, by what causes what. It changes spans in place (their slice,
// Start, End and Skew).
//
// Two things are certain of a pod on another node:
//
//	store: "bound to n1" begins ──► every step of the pod on n1
//	"ready" on n1 ──► the controllers that act on it: endpoint slice of service … updated
//
// A node's clock is moved by the least that makes both true; where they contradict
// each other, by the first.
func Align(spans []Span) {
	type bounds struct {
		after, before time.Duration // the clock has to go forward by at least after, back by at least before
	}
	bound, published, ready := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	for i := range spans {
		s := &spans[i]
		if s.Kind != "Pod" {
			continue
		}
		switch {
		case s.Component == "apiserver" && strings.HasPrefix(s.Step, StepBound):
			earliest(bound, string(s.UID), s.Start)
		case strings.HasPrefix(s.Step, StepPublished):
			earliest(published, string(s.UID), s.End)
		case s.Component == "kubelet" && s.Step == StepReady:
			earliest(ready, string(s.UID), s.End)
		}
	}
	nodes := map[string]*bounds{}
	for i := range spans {
		s := &spans[i]
		if s.Node == "" || s.Kind != "Pod" || !onNode[s.Component] {
			continue
		}
		b := nodes[s.Node]
		if b == nil {
			b = &bounds{}
			nodes[s.Node] = b
		}
		if t, ok := bound[string(s.UID)]; ok {
			b.after = max(b.after, t.Sub(s.Start))
		}
		if t, ok := published[string(s.UID)]; ok && s.Step == StepReady {
			// It may become ready again later: the first time counts.
			if late := ready[string(s.UID)].Sub(t); late >= 0 {
				b.before = max(b.before, late+time.Microsecond)
			}
		}
	}
	for i := range spans {
		s := &spans[i]
		b := nodes[s.Node]
		if b == nil || !onNode[s.Component] {
			continue
		}
		shift := b.after
		if shift == 0 {
			shift = -b.before
		}
		s.Start, s.End, s.Skew = s.Start.Add(shift), s.End.Add(shift), s.Skew+shift
	}
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Or(a.End.Compare(b.End), a.Start.Compare(b.Start)) })
}

// Skews returns by how much the clocks of nodes were wrong.
func Skews(spans []Span) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, s := range spans {
		if s.Skew != 0 && s.Skew.Abs() > out[s.Node].Abs() {
			out[s.Node] = s.Skew
		}
	}
	maps.DeleteFunc(out, func(node string, _ time.Duration) bool { return node == "" })
	return out
}

// Steps that Align knows.
const (
	StepBound     = "bound to "
	StepPublished = "endpoint slice of service "
	StepReady     = "ready"
)

// onNode are the components whose steps are told by the clock of their node.
var onNode = map[string]bool{"kubelet": true, "proxy": true, "network": true, "volumes": true, "gateway": true, "sidecar": true, "policy": true}

func earliest(m map[string]time.Time, key string, t time.Time) {
	if old, ok := m[key]; !ok || t.Before(old) {
		m[key] = t
	}
}
