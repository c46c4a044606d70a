package defaultpreemption

import (
	"context"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "DefaultPreemption"

// Args are the plug-in's settings.
type Args struct {
	// The dry run ends after this share of the nodes gave a candidate (10 % when zero) …
	MinCandidateNodesPercentage int
	// … but not before this number (100 when zero).
	MinCandidateNodesAbsolute int
}

type plugin struct {
	args Args
	f    *scheduler.Framework
	pdbs policylisters.PodDisruptionBudgetLister // nil in simulations
}

var _ scheduler.PostFilterPlugin = (*plugin)(nil)

// New makes the plug-in.
func New(args Args) scheduler.Factory {
	if args.MinCandidateNodesPercentage == 0 {
		args.MinCandidateNodesPercentage = 10
	}
	if args.MinCandidateNodesAbsolute == 0 {
		args.MinCandidateNodesAbsolute = 100
	}
	return func(f *scheduler.Framework) (scheduler.Plugin, error) {
		pl := &plugin{args: args, f: f}
		if f.Informers != nil {
			budgets := f.Informers.Policy().V1().PodDisruptionBudgets()
			f.Watch(budgets.Informer())
			pl.pdbs = budgets.Lister()
		}
		return pl, nil
	}
}

func (*plugin) Name() string { return Name }

func (pl *plugin) PostFilter(ctx context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, d *scheduler.Diagnosis) (*scheduler.PostFilterResult, *scheduler.Status) {
	// 1. May this pod preempt?
	if why := pl.ineligible(p, d); why != "" {
		return nil, scheduler.NewStatus(Name, scheduler.Unschedulable, "preemption: "+why)
	}
	// 2. Which nodes would do without some pods?
	candidates, st := pl.candidates(state, p, d)
	if !st.IsSuccess() {
		return nil, st
	}
	if len(candidates.found) == 0 {
		e := &scheduler.FitError{NumNodes: len(pl.f.Snapshot().Nodes), Diagnosis: candidates.verdicts}
		return &scheduler.PostFilterResult{}, scheduler.NewStatus(Name, scheduler.Unschedulable, "preemption: "+e.Error())
	}
	// 3. Which of them does the least harm?
	best := pick(candidates.found)
	// 4. Make room. The pod comes back when a victim is gone.
	pl.evict(p, best)
	return &scheduler.PostFilterResult{Nominated: best.node}, nil
}

// ineligible says why the pod must not preempt now, "" when it may.
func (pl *plugin) ineligible(p *scheduler.PodInfo, d *scheduler.Diagnosis) string {
	if policy := p.Pod.Spec.PreemptionPolicy; policy != nil && *policy == v1.PreemptNever {
		return "not eligible due to preemptionPolicy=Never."
	}
	nominated := pl.f.Snapshot().Get(p.Pod.Status.NominatedNodeName)
	if nominated == nil || d.Verdict(nominated.Index).Code() == scheduler.UnschedulableAndUnresolvable {
		return ""
	}
	for _, other := range nominated.Pods {
		if other.Pod.DeletionTimestamp != nil && other.Priority < p.Priority {
			return "not eligible due to a terminating pod on the nominated node."
		}
	}
	return ""
}

// outcome are the candidates, or the verdicts of nodes that are none.
type outcome struct {
	found    []*candidate
	verdicts scheduler.Diagnosis
}

var (
	notHelpful = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "Preemption is not helpful for scheduling")
	noVictims  = scheduler.NewStatus(Name, scheduler.UnschedulableAndUnresolvable, "No preemption victims found for incoming pod")
)

// candidates tries nodes, beginning at a random one, until there are enough.
func (pl *plugin) candidates(state *scheduler.CycleState, p *scheduler.PodInfo, d *scheduler.Diagnosis) (o outcome, st *scheduler.Status) {
	nodes := pl.f.Snapshot().Nodes
	o.verdicts = scheduler.Diagnosis{Absent: notHelpful, Nodes: make([]*scheduler.Status, len(nodes))}
	var potential []*scheduler.NodeInfo
	for i, n := range nodes {
		if d.Verdict(i).Code() == scheduler.Unschedulable {
			potential = append(potential, n)
		}
	}
	if len(potential) == 0 {
		return o, nil
	}
	budgets, err := pl.budgets()
	if err != nil {
		return o, scheduler.ErrorStatus(Name, err)
	}
	enough := max(len(potential)*pl.args.MinCandidateNodesPercentage/100, pl.args.MinCandidateNodesAbsolute)
	gentle := false // a candidate that violates no budget was found
	first := rand.IntN(len(potential))
	for k := range potential {
		n := potential[(first+k)%len(potential)]
		c, verdict := pl.dryRun(state, p, n, budgets)
		switch {
		case c != nil:
			o.found = append(o.found, c)
			gentle = gentle || c.violations == 0
		case verdict.Code() == scheduler.Error:
			return o, verdict
		default:
			o.verdicts.Nodes[n.Index] = verdict
		}
		if gentle && len(o.found) >= enough {
			break
		}
	}
	return o, nil
}
