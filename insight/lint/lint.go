package lint

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// A Severity says how bad it is.
type Severity int

// Severities, the worse first.
const (
	// Error: it will not work, or lose requests or data.
	Error Severity = iota
	// Warning: it works until something happens.
	Warning
	// Advice: good practice.
	Advice
)

// String is its name.
func (s Severity) String() string { return [...]string{"error", "warning", "advice"}[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A Place is where an object was read.
type Place struct {
	File     string `json:"file,omitempty"`
	Document int    `json:"document,omitempty"` // from 1
	Line     int    `json:"line,omitempty"`     // of the document's begin, from 1
}

// A Finding is one thing that should be otherwise.
type Finding struct {
	Rule     string      `json:"rule"`
	Severity Severity    `json:"severity"`
	Object   insight.Ref `json:"object"`
	Place    Place       `json:"place"`
	// Part is what of it: "container web".
	Part string `json:"part,omitempty"`
	What string `json:"what"`
	Why  string `json:"why"`
	// Fix is YAML to be merged into the object.
	Fix string `json:"fix,omitempty"`
}

// A Set is what is checked together: objects refer to each other.
type Set struct {
	Objects []insight.Object
	places  map[insight.Object]Place
	// broken are documents that could not be read.
	broken []Finding
	// whole says that what the set does not have does not exist.
	whole bool
}

// A Rule checks for one thing.
type Rule struct {
	Name     string
	Severity Severity
	// Why it matters, in one sentence.
	Why   string
	check func(s *Set, o insight.Object) []Finding
}

// Check runs the rules over a set. Findings come in the order of the objects.
func Check(s *Set, disabled []string) ([]Finding, error) {
	rules := Rules()
	for _, name := range disabled {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == name }) && name != brokenRule {
			return nil, fmt.Errorf("there is no rule %q", name)
		}
	}
	rules = slices.DeleteFunc(rules, func(r Rule) bool { return slices.Contains(disabled, r.Name) })
	var out []Finding
	if !slices.Contains(disabled, brokenRule) {
		out = slices.Clone(s.broken)
	}
	for _, o := range s.Objects {
		for _, r := range rules {
			if slices.Contains(ignored(o), r.Name) {
				continue
			}
			for _, f := range r.check(s, o) {
				f.Rule, f.Severity, f.Why, f.Place = r.Name, r.Severity, r.Why, s.places[o]
				if f.Object == (insight.Ref{}) {
					f.Object = insight.RefOf(o)
				}
				out = append(out, f)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), a.Place.Document-b.Place.Document)
	})
	return out, nil
}

// template is what a workload's pods are made of, or nil; a pod is made of itself.
func template(o insight.Object) *corev1.PodTemplateSpec {
	if p, ok := o.(*corev1.Pod); ok {
		return &corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}
	}
	return insight.Template(o)
}

// serves reports that a workload's pods stay, and are asked by others.
func serves(o insight.Object) bool {
	switch o := o.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet, *appsv1.ReplicaSet:
		return true
	case *corev1.Pod:
		return o.Spec.RestartPolicy == "" || o.Spec.RestartPolicy == corev1.RestartPolicyAlways
	}
	return false
}
