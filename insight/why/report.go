package why

import (
	"cmp"
	"slices"

	"github.com/periplus/periplus/insight"
)

// A Verdict is the short answer.
type Verdict string

// Verdicts.
const (
	IsHealthy Verdict = "healthy"
	HasFaults Verdict = "faulty"
	// IsStarting: not there yet, and nothing wrong so far.
	IsStarting Verdict = "starting"
	// IsUnknown: not healthy, and no rule knows why.
	IsUnknown Verdict = "unknown"
)

// A Report is the whole answer.
type Report struct {
	Object  insight.Ref `json:"object"`
	Verdict Verdict     `json:"verdict"`
	// State says how the object is doing: "1 of 3 replicas are ready".
	State string `json:"state"`
	// Roots are what is wrong, the root cause first. Effects follow from them.
	Roots   []insight.Finding `json:"roots,omitempty"`
	Effects []insight.Finding `json:"effects,omitempty"`
	Notes   []insight.Finding `json:"notes,omitempty"`
	Tree    Branch            `json:"tree"`
	// Unread are the kinds that could not be read.
	Unread []string `json:"unread,omitempty"`
}

// A Branch is an object in the fault tree, with what it needs.
type Branch struct {
	Object insight.Ref `json:"object"`
	Health Health      `json:"health"`
	State  string      `json:"state,omitempty"`
	Rules  []string    `json:"rules,omitempty"`
	Needs  []Branch    `json:"needs,omitempty"`
}

// Explain finds out why an object is not healthy. More are objects that belong to it,
// whether it needs them or not.
func Explain(s *insight.Snapshot, o insight.Object, more ...insight.Object) *Report {
	rules, met := Rules(), map[insight.Ref]bool{}
	root := walk(s, o, rules, met)
	for _, m := range more {
		if !met[insight.RefOf(m)] {
			root.needs = append(root.needs, walk(s, m, rules, met))
		}
	}
	r := &Report{Object: root.ref, State: root.state, Tree: branch(root), Unread: s.Unread()}
	type found struct {
		insight.Finding
		depth, order int
	}
	var all []found
	root.each(0, func(n *node, depth int) {
		for _, f := range n.findings {
			all = append(all, found{f, depth, len(all)})
		}
	})
	// Of equal standing, what is farther down is nearer to the cause.
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(int(a.Level)-int(b.Level), b.depth-a.depth, a.order-b.order)
	})
	cause := false
	for _, f := range all {
		switch {
		case f.Level == insight.Note:
			r.Notes = merge(s, r.Notes, f.Finding)
		case f.Level == insight.Effect && cause:
			r.Effects = merge(s, r.Effects, f.Finding)
		default:
			cause = true
			r.Roots = merge(s, r.Roots, f.Finding)
		}
	}
	r.Verdict = verdict(root, len(r.Roots) > 0)
	return r
}

func verdict(root *node, found bool) Verdict {
	switch {
	case found:
		return HasFaults
	case root.health == Bad:
		return IsUnknown
	case root.health == Starting:
		return IsStarting
	}
	return IsHealthy
}

// merge adds a finding, or notes it with the equal one of another replica.
func merge(s *insight.Snapshot, list []insight.Finding, f insight.Finding) []insight.Finding {
	for i := range list {
		have := &list[i]
		if have.Rule == f.Rule && have.Part == f.Part && have.Object.Kind == f.Object.Kind && have.What == f.What && have.Object != f.Object && sameOwner(s, have.Object, f.Object) {
			have.Also = append(have.Also, f.Object)
			return list
		}
	}
	return append(list, f)
}

func sameOwner(s *insight.Snapshot, a, b insight.Ref) bool {
	x, ok1 := s.Find(a)
	y, ok2 := s.Find(b)
	return ok1 && ok2 && insight.RefOf(s.Owner(x)) == insight.RefOf(s.Owner(y))
}

func branch(n *node) Branch {
	b := Branch{Object: n.ref, Health: n.health, State: n.state}
	for _, f := range n.findings {
		if !slices.Contains(b.Rules, f.Rule) {
			b.Rules = append(b.Rules, f.Rule)
		}
	}
	for _, c := range n.needs {
		b.Needs = append(b.Needs, branch(c))
	}
	return b
}
