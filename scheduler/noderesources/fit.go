package noderesources

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// FitName is the name of the plug-in NodeResourcesFit.
const FitName = "NodeResourcesFit"

// FitArgs are the settings of NodeResourcesFit. The zero value is upstream's default.
type FitArgs struct {
	// IgnoredResources are extended resources that are not checked, by name;
	// IgnoredResourceGroups by the part of the name before the slash.
	IgnoredResources      []string
	IgnoredResourceGroups []string
	// Strategy scores nodes.
	Strategy Strategy
}

type fit struct {
	f     *scheduler.Framework
	args  FitArgs
	slot  scheduler.Slot
	score *strategy
}

var (
	_ scheduler.PreFilterPlugin = (*fit)(nil)
	_ scheduler.FilterPlugin    = (*fit)(nil)
	_ scheduler.ScorePlugin     = (*fit)(nil)
	_ scheduler.BatchPlugin     = (*fit)(nil)
	_ scheduler.EventPlugin     = (*fit)(nil)
)

// NewFit makes NodeResourcesFit.
func NewFit(args FitArgs) scheduler.Factory {
	return func(f *scheduler.Framework) (scheduler.Plugin, error) {
		s, err := newStrategy(args.Strategy, f.Resources)
		if err != nil {
			return nil, err
		}
		return &fit{f: f, args: args, slot: f.NewSlot(), score: s}, nil
	}
}

func (*fit) Name() string { return FitName }

// wants is what Filter looks for: the resources that the pod requests.
type wants struct {
	index  []int // resource indexes with a request
	amount []int64
	// verdicts are the statuses so far by what is lacking, so that thousands of
	// nodes with the same shortage share one.
	verdicts map[lack]*scheduler.Status
}

// lack says what a node lacks: one bit per entry of wants, and the last for the number of pods.
type lack struct {
	missing uint64
	never   bool // more is requested than the node has at all
}

const lackPods = 1 << 63

// PreFilter lists the requested resources.
func (pl *fit) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	state.Set(pl.slot, pl.wants(p))
	return nil, nil
}

func (pl *fit) wants(p *scheduler.PodInfo) *wants {
	w := &wants{}
	for i := range scheduler.FirstExtra + len(p.Requests.Extra) {
		n := p.Requests.Get(i)
		if n <= 0 || i >= scheduler.FirstExtra && pl.ignored(pl.f.Resources.Name(i)) || len(w.index) == 63 {
			continue
		}
		w.index = append(w.index, i)
		w.amount = append(w.amount, n)
	}
	return w
}

func (pl *fit) ignored(name v1.ResourceName) bool {
	group, _, extended := strings.Cut(string(name), "/")
	return extended && (slices.Contains(pl.args.IgnoredResources, string(name)) || slices.Contains(pl.args.IgnoredResourceGroups, group))
}

func (pl *fit) Filter(state *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	w, _ := state.Get(pl.slot).(*wants)
	if w == nil {
		w = pl.wants(p)
	}
	l := w.lacking(n)
	if l.missing == 0 {
		return nil
	}
	return pl.verdict(w, l)
}

// lacking compares the requests with what is left on the node.
func (w *wants) lacking(n *scheduler.NodeInfo) (l lack) {
	if len(n.Pods)+1 > n.AllowedPods {
		l.missing = lackPods
	}
	for k, i := range w.index {
		total := n.Allocatable.Get(i)
		if w.amount[k] > total-n.Requested.Get(i) {
			l.missing |= 1 << k
			l.never = l.never || w.amount[k] > total
		}
	}
	return l
}

func (pl *fit) verdict(w *wants, l lack) *scheduler.Status {
	if s := w.verdicts[l]; s != nil {
		return s
	}
	var reasons []string
	if l.missing&lackPods != 0 {
		reasons = append(reasons, "Too many pods")
	}
	for k, i := range w.index {
		if l.missing&(1<<k) != 0 {
			reasons = append(reasons, "Insufficient "+string(pl.f.Resources.Name(i)))
		}
	}
	code := scheduler.Unschedulable
	if l.never {
		code = scheduler.UnschedulableAndUnresolvable
	}
	s := scheduler.NewStatus(FitName, code, reasons...)
	if w.verdicts == nil {
		w.verdicts = map[lack]*scheduler.Status{}
	}
	w.verdicts[l] = s
	return s
}

func (pl *fit) Score(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	return pl.score.score(p, n), nil
}

func (*fit) Same(a, b *scheduler.PodInfo) bool {
	return a.Requests.Equal(&b.Requests) && a.NonZero.Equal(&b.NonZero)
}

func (pl *fit) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.AssignedPod, Action: scheduler.Delete | scheduler.UpdatePodScaleDown},
			Worth: pl.freed,
		},
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.PendingPod, Action: scheduler.UpdatePodScaleDown},
			Worth: scheduler.SamePod,
		},
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add | scheduler.UpdateNodeAllocatable},
			Worth: pl.grown,
		},
	}
}

// freed reports whether a pod that went or shrank gave back something that p requests.
func (pl *fit) freed(p *scheduler.PodInfo, old, new any) bool {
	was, is := scheduler.AsPod(old), scheduler.AsPod(new)
	if was == nil || is == nil {
		return true // a deletion frees a place for a pod, whatever it requested
	}
	before, _ := pl.f.Resources.Requests(was)
	after, _ := pl.f.Resources.Requests(is)
	for i := range scheduler.FirstExtra + len(p.Requests.Extra) {
		if p.Requests.Get(i) > 0 && after.Get(i) < before.Get(i) {
			return true
		}
	}
	return false
}

// grown reports whether an empty node of the new size would do and has more of what p requests.
func (pl *fit) grown(p *scheduler.PodInfo, old, new any) bool {
	is := scheduler.AsNode(new)
	if is == nil {
		return true
	}
	now := scheduler.NewNodeInfo(is, pl.f.Resources)
	w := pl.wants(p)
	if w.lacking(now).missing != 0 {
		return false
	}
	was := scheduler.AsNode(old)
	if was == nil {
		return true
	}
	before := scheduler.NewNodeInfo(was, pl.f.Resources)
	if now.AllowedPods > before.AllowedPods {
		return true
	}
	for _, i := range w.index {
		if now.Allocatable.Get(i) > before.Allocatable.Get(i) {
			return true
		}
	}
	return false
}
