package interpodaffinity

import (
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "InterPodAffinity"

// Args are the plug-in's settings.
type Args struct {
	// HardPodAffinityWeight is the weight in scores of required affinity terms of pods that
	// are there: 1 when zero.
	HardPodAffinityWeight int64
	// IgnorePreferredTermsOfExistingPods leaves them out of scores.
	IgnorePreferredTermsOfExistingPods bool
}

type plugin struct {
	args          Args
	f             *scheduler.Framework
	namespaces    corelisters.NamespaceLister // nil in simulations
	filter, score scheduler.Slot
}

var (
	_ scheduler.PreFilterPlugin    = (*plugin)(nil)
	_ scheduler.PreFilterExtension = (*plugin)(nil)
	_ scheduler.FilterPlugin       = (*plugin)(nil)
	_ scheduler.PreScorePlugin     = (*plugin)(nil)
	_ scheduler.NormalizePlugin    = (*plugin)(nil)
	_ scheduler.BatchPlugin        = (*plugin)(nil)
	_ scheduler.EventPlugin        = (*plugin)(nil)
)

var (
	noAffinity   = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't match pod affinity rules")
	antiAffinity = scheduler.NewStatus(Name, scheduler.Unschedulable, "node(s) didn't match pod anti-affinity rules")
	theirAnti    = scheduler.NewStatus(Name, scheduler.Unschedulable, "node(s) didn't satisfy existing pods anti-affinity rules")
	skip         = scheduler.NewStatus(Name, scheduler.Skip)
)

// New makes the plug-in.
func New(args Args) scheduler.Factory {
	if args.HardPodAffinityWeight == 0 {
		args.HardPodAffinityWeight = 1
	}
	return func(f *scheduler.Framework) (scheduler.Plugin, error) {
		pl := &plugin{args: args, f: f, filter: f.NewSlot(), score: f.NewSlot()}
		if f.Informers != nil {
			namespaces := f.Informers.Core().V1().Namespaces()
			f.Watch(namespaces.Informer())
			pl.namespaces = namespaces.Lister()
		}
		return pl, nil
	}
}

func (*plugin) Name() string { return Name }

// labelsOf returns the labels of a namespace, for namespaceSelectors.
func (pl *plugin) labelsOf(namespace string) labels.Set {
	if pl.namespaces == nil {
		return nil
	}
	ns, err := pl.namespaces.Get(namespace)
	if err != nil {
		return nil
	}
	return ns.Labels
}

// counts are numbers of pods by topology key and value; entries are never zero or empty.
type counts map[string]map[string]int

func (c counts) add(n *scheduler.NodeInfo, key string, by int) {
	value, ok := n.Node.Labels[key]
	if !ok {
		return
	}
	values := c[key]
	if values == nil {
		values = map[string]int{}
		c[key] = values
	}
	if values[value] += by; values[value] != 0 {
		return
	}
	if delete(values, value); len(values) == 0 {
		delete(c, key)
	}
}

// in returns the number of pods in the node's domain of key.
func (c counts) in(n *scheduler.NodeInfo, key string) int {
	values := c[key]
	if values == nil {
		return 0
	}
	value, ok := n.Node.Labels[key]
	if !ok {
		return 0
	}
	return values[value]
}

func (c counts) clone() counts {
	out := make(counts, len(c))
	for key, values := range c {
		out[key] = maps.Clone(values)
	}
	return out
}

// required is what Filter looks at.
type required struct {
	theirs   counts // pods with an anti-affinity term against the pod
	affinity counts // pods that match all affinity terms, once per term
	anti     counts // pods that match an anti-affinity term
}

var _ scheduler.Cloner = (*required)(nil)

func (r *required) Clone() any {
	return &required{r.theirs.clone(), r.affinity.clone(), r.anti.clone()}
}

// effect says that a pod on a node counts in one of the three, in the domain of key.
type effect struct {
	into counts
	key  string
}

// effects appends what a pod like other does to r.
func (pl *plugin) effects(r *required, p, other *scheduler.PodInfo, out []effect) []effect {
	if a := other.Affinity; a != nil {
		for i := range a.RequiredAnti {
			if t := &a.RequiredAnti[i]; t.Matches(p.Pod, pl.labelsOf) {
				out = append(out, effect{r.theirs, t.TopologyKey})
			}
		}
	}
	if p.Affinity == nil {
		return out
	}
	if terms := p.Affinity.Required; len(terms) > 0 && pl.matchesAll(terms, other.Pod) {
		for i := range terms {
			out = append(out, effect{r.affinity, terms[i].TopologyKey})
		}
	}
	for i := range p.Affinity.RequiredAnti {
		if t := &p.Affinity.RequiredAnti[i]; t.Matches(other.Pod, pl.labelsOf) {
			out = append(out, effect{r.anti, t.TopologyKey})
		}
	}
	return out
}

// update counts other, which is on n, by +1 or -1.
func (pl *plugin) update(r *required, p, other *scheduler.PodInfo, n *scheduler.NodeInfo, by int) {
	for _, e := range pl.effects(r, p, other, nil) {
		e.into.add(n, e.key, by)
	}
}

func (pl *plugin) matchesAll(terms []scheduler.AffinityTerm, pod *v1.Pod) bool {
	for i := range terms {
		if !terms[i].Matches(pod, pl.labelsOf) {
			return false
		}
	}
	return true
}

// PreFilter counts over all classes of pods. A pod without required terms only needs
// those with anti-affinity.
func (pl *plugin) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	s := pl.f.Snapshot()
	own := p.Affinity != nil && len(p.Affinity.Required)+len(p.Affinity.RequiredAnti) > 0
	if p.Affinity != nil && p.Affinity.Err != nil {
		return nil, scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, p.Affinity.Err.Error())
	}
	if !own && s.Affine == 0 {
		return nil, skip
	}
	r := &required{counts{}, counts{}, counts{}}
	var effects []effect
	for _, class := range s.Classes {
		if !own && class.Pod.Affinity == nil {
			continue
		}
		if effects = pl.effects(r, p, &class.Pod, effects[:0]); len(effects) == 0 {
			continue
		}
		class.Nodes(s, func(n *scheduler.NodeInfo, pods int) {
			for _, e := range effects {
				e.into.add(n, e.key, pods)
			}
		})
	}
	if !own && len(r.theirs) == 0 {
		return nil, skip
	}
	state.Set(pl.filter, r)
	return nil, nil
}

func (pl *plugin) AddPod(state *scheduler.CycleState, p, other *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if r, ok := state.Get(pl.filter).(*required); ok {
		pl.update(r, p, other, n, 1)
	}
	return nil
}

func (pl *plugin) RemovePod(state *scheduler.CycleState, p, other *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if r, ok := state.Get(pl.filter).(*required); ok {
		pl.update(r, p, other, n, -1)
	}
	return nil
}

func (pl *plugin) Filter(state *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	r, ok := state.Get(pl.filter).(*required)
	if !ok {
		return nil
	}
	if p.Affinity != nil {
		if !pl.affine(r, p, n) {
			return noAffinity
		}
		for i := range p.Affinity.RequiredAnti {
			if r.anti.in(n, p.Affinity.RequiredAnti[i].TopologyKey) > 0 {
				return antiAffinity
			}
		}
	}
	for key := range r.theirs {
		if r.theirs.in(n, key) > 0 {
			return theirAnti
		}
	}
	return nil
}

// affine reports whether the node's domains have pods that match the affinity terms. The
// first pod of a group, which matches its own terms, may go anywhere with the labels.
func (pl *plugin) affine(r *required, p *scheduler.PodInfo, n *scheduler.NodeInfo) bool {
	terms, found := p.Affinity.Required, true
	for i := range terms {
		if _, ok := n.Node.Labels[terms[i].TopologyKey]; !ok {
			return false
		}
		found = found && r.affinity.in(n, terms[i].TopologyKey) > 0
	}
	return found || len(r.affinity) == 0 && pl.matchesAll(terms, p.Pod)
}

// Same: pods without terms, while no pod has any, do not concern this plug-in.
func (pl *plugin) Same(a, b *scheduler.PodInfo) bool {
	return a.Affinity == nil && b.Affinity == nil && pl.f.Snapshot().Affine == 0
}

func (pl *plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.AssignedPod, Action: scheduler.Add | scheduler.Delete | scheduler.UpdatePodLabel},
			Worth: pl.podChanged,
		},
		{
			Event: scheduler.ClusterEvent{Resource: scheduler.PendingPod, Action: scheduler.UpdatePodLabel},
			Worth: scheduler.SamePod,
		},
		{Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add | scheduler.UpdateNodeLabel}},
	}
}

// podChanged reports whether a pod that came, went or changed its labels can help p:
// by matching its affinity now, or by no longer standing against it.
func (pl *plugin) podChanged(p *scheduler.PodInfo, old, new any) bool {
	was, is := scheduler.AsPod(old), scheduler.AsPod(new)
	a := p.Affinity
	if is != nil && a != nil && len(a.Required) > 0 && pl.matchesAll(a.Required, is) && (was == nil || !pl.matchesAll(a.Required, was)) {
		return true
	}
	if was == nil {
		return false
	}
	if a != nil {
		for i := range a.RequiredAnti {
			if t := &a.RequiredAnti[i]; t.Matches(was, pl.labelsOf) && (is == nil || !t.Matches(is, pl.labelsOf)) {
				return true
			}
		}
	}
	if is != nil {
		return false // anti-affinity terms of a pod do not change
	}
	if theirs := scheduler.NewPodInfo(was, pl.f.Resources).Affinity; theirs != nil {
		for i := range theirs.RequiredAnti {
			if theirs.RequiredAnti[i].Matches(p.Pod, pl.labelsOf) {
				return true
			}
		}
	}
	return false
}
