package nodeaffinity

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "NodeAffinity"

// Args are the plug-in's settings.
type Args struct {
	// AddedAffinity applies to all pods of the profile in addition to their own.
	AddedAffinity *v1.NodeAffinity
}

type plugin struct {
	f             *scheduler.Framework
	memos         memos
	required      *nodeaffinity.NodeSelector
	preferred     *nodeaffinity.PreferredSchedulingTerms
	filter, score scheduler.Slot
}

var (
	_ scheduler.PreFilterPlugin = (*plugin)(nil)
	_ scheduler.FilterPlugin    = (*plugin)(nil)
	_ scheduler.PreScorePlugin  = (*plugin)(nil)
	_ scheduler.NormalizePlugin = (*plugin)(nil)
	_ scheduler.BatchPlugin     = (*plugin)(nil)
	_ scheduler.EventPlugin     = (*plugin)(nil)
)

var (
	mismatch = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't match Pod's node affinity/selector")
	enforced = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "node(s) didn't match scheduler-enforced node affinity")
	conflict = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "pod affinity terms conflict")
	skip     = scheduler.NewStatus(Name, scheduler.Skip)
)

// New makes the plug-in.
func New(args Args) scheduler.Factory {
	return func(f *scheduler.Framework) (scheduler.Plugin, error) {
		pl := &plugin{f: f, filter: f.NewSlot(), score: f.NewSlot()}
		var err error
		if a := args.AddedAffinity; a != nil {
			if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
				if pl.required, err = nodeaffinity.NewNodeSelector(r); err != nil {
					return nil, fmt.Errorf("%s: addedAffinity: %w", Name, err)
				}
			}
			if p := a.PreferredDuringSchedulingIgnoredDuringExecution; len(p) > 0 {
				if pl.preferred, err = nodeaffinity.NewPreferredSchedulingTerms(p); err != nil {
					return nil, fmt.Errorf("%s: addedAffinity: %w", Name, err)
				}
			}
		}
		return pl, nil
	}
}

func (*plugin) Name() string { return Name }

func requiredOf(pod *v1.Pod) *v1.NodeSelector {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func preferredOf(pod *v1.Pod) []v1.PreferredSchedulingTerm {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// PreFilter narrows the nodes when each term names its node by the field metadata.name,
// as pods of a DaemonSet do.
func (pl *plugin) PreFilter(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo) (*scheduler.PreFilterResult, *scheduler.Status) {
	required := requiredOf(p.Pod)
	if required == nil && len(p.Pod.Spec.NodeSelector) == 0 && pl.required == nil {
		return nil, skip
	}
	state.Set(pl.filter, pl.memos.get(p.Pod, pl.f.Snapshot()))
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return nil, nil
	}
	var names sets.Set[string]
	for i := range required.NodeSelectorTerms {
		var term sets.Set[string] // nil: any node
		for _, r := range required.NodeSelectorTerms[i].MatchFields {
			if r.Key != metav1.ObjectNameField || r.Operator != v1.NodeSelectorOpIn {
				continue
			}
			if s := sets.New(r.Values...); term == nil {
				term = s
			} else {
				term = term.Intersection(s)
			}
		}
		if term == nil {
			return nil, nil
		}
		names = names.Union(term)
	}
	if len(names) == 0 {
		return nil, conflict
	}
	return &scheduler.PreFilterResult{NodeNames: names}, nil
}

func (pl *plugin) Filter(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) *scheduler.Status {
	if pl.required != nil && !pl.required.Match(n.Node) {
		return enforced
	}
	m, _ := state.Get(pl.filter).(*memo)
	if m == nil {
		return nil // PreFilter skipped
	}
	if !m.matches(n) {
		return mismatch
	}
	return nil
}

func (pl *plugin) PreScore(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, _ []*scheduler.NodeInfo) *scheduler.Status {
	terms := preferredOf(p.Pod)
	if len(terms) == 0 && pl.preferred == nil {
		return skip
	}
	var preferred *nodeaffinity.PreferredSchedulingTerms
	if len(terms) > 0 {
		var err error
		if preferred, err = nodeaffinity.NewPreferredSchedulingTerms(terms); err != nil {
			return scheduler.ErrorStatus(Name, err)
		}
	}
	state.Set(pl.score, preferred)
	return nil
}

// Score sums up the weights of the preferred terms that the node matches.
func (pl *plugin) Score(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	var sum int64
	if pl.preferred != nil {
		sum += pl.preferred.Score(n.Node)
	}
	if preferred, _ := state.Get(pl.score).(*nodeaffinity.PreferredSchedulingTerms); preferred != nil {
		sum += preferred.Score(n.Node)
	}
	return sum, nil
}

func (*plugin) Normalize(_ *scheduler.CycleState, _ *scheduler.PodInfo, _ []*scheduler.NodeInfo, scores []int64) *scheduler.Status {
	scheduler.Normalize(scores, false)
	return nil
}

func (*plugin) Same(a, b *scheduler.PodInfo) bool {
	return equality.Semantic.DeepEqual(a.Pod.Spec.NodeSelector, b.Pod.Spec.NodeSelector) &&
		(requiredOf(a.Pod) == nil && requiredOf(b.Pod) == nil || equality.Semantic.DeepEqual(requiredOf(a.Pod), requiredOf(b.Pod))) &&
		(preferredOf(a.Pod) == nil && preferredOf(b.Pod) == nil || equality.Semantic.DeepEqual(preferredOf(a.Pod), preferredOf(b.Pod)))
}

func (pl *plugin) Events() []scheduler.EventHint {
	return []scheduler.EventHint{{
		Event: scheduler.ClusterEvent{Resource: scheduler.Node, Action: scheduler.Add | scheduler.UpdateNodeLabel},
		Worth: func(p *scheduler.PodInfo, old, new any) bool {
			was, is := scheduler.AsNode(old), scheduler.AsNode(new)
			if is == nil {
				return true
			}
			if pl.required != nil && !pl.required.Match(is) {
				return false
			}
			affinity := nodeaffinity.GetRequiredNodeAffinity(p.Pod)
			if match, _ := affinity.Match(is); !match {
				return false
			}
			if was == nil {
				return true
			}
			before, _ := affinity.Match(was)
			return !before || pl.required != nil && !pl.required.Match(was)
		},
	}}
}
