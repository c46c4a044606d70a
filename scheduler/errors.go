package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrNoNodes is returned when the cluster has no node at all.
	ErrNoNodes = errors.New("no nodes available to schedule pods")
	// ErrNoBinder is returned when no Bind plug-in of the profile took the pod.
	ErrNoBinder = errors.New("no bind plug-in handled the pod")
)

// A Diagnosis says why no node fits a pod.
type Diagnosis struct {
	// Nodes holds the verdict of each node by its Index in the snapshot; nil
	// entries were not examined and have the verdict Absent.
	Nodes []*Status
	// Absent is the verdict of nodes that were left out from the beginning.
	Absent *Status
	// Rejectors names the plug-ins that rejected a node or the pod. An event that
	// one of them asked for brings the pod back.
	Rejectors []string
	// PendingOn names those of Rejectors that answered Pending.
	PendingOn []string
	// PreFilterMsg is set when a PreFilter plug-in rejected the pod as a whole.
	PreFilterMsg string
	// PostFilterMsg is what preemption had to say.
	PostFilterMsg string
}

// Verdict returns the status of the node at index i of the snapshot.
func (d *Diagnosis) Verdict(i int) *Status {
	if i < len(d.Nodes) && d.Nodes[i] != nil {
		return d.Nodes[i]
	}
	return d.Absent
}

func (d *Diagnosis) reject(s *Status) {
	if s.plugin == "" {
		return
	}
	if s.code == Pending {
		d.PendingOn = addName(d.PendingOn, s.plugin)
	}
	d.Rejectors = addName(d.Rejectors, s.plugin)
}

func addName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// A FitError says that none of NumNodes nodes fits the pod.
type FitError struct {
	NumNodes  int
	Diagnosis Diagnosis
}

// Error counts the nodes per reason, in the words that people know:
//
//	0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: …
func (f *FitError) Error() string {
	d := &f.Diagnosis
	var b strings.Builder
	fmt.Fprintf(&b, "0/%d nodes are available:", f.NumNodes)
	if d.PreFilterMsg != "" {
		fmt.Fprintf(&b, " %s.", d.PreFilterMsg)
	} else if counts := f.counts(); len(counts) > 0 {
		fmt.Fprintf(&b, " %s.", strings.Join(counts, ", "))
	}
	if d.PostFilterMsg != "" {
		b.WriteByte(' ')
		b.WriteString(d.PostFilterMsg)
	}
	return b.String()
}

// counts returns "count reason" per reason, sorted as strings.
func (f *FitError) counts() []string {
	// Verdicts are shared pointers: count those first, then their reasons.
	byStatus := map[*Status]int{}
	explicit := 0
	for _, s := range f.Diagnosis.Nodes {
		if s != nil {
			byStatus[s]++
			explicit++
		}
	}
	if rest := f.NumNodes - explicit; rest > 0 && f.Diagnosis.Absent != nil {
		byStatus[f.Diagnosis.Absent] += rest
	}
	byReason := map[string]int{}
	for s, n := range byStatus {
		for _, reason := range s.reasons {
			byReason[reason] += n
		}
	}
	counts := make([]string, 0, len(byReason))
	for reason, n := range byReason {
		counts = append(counts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(counts)
	return counts
}
