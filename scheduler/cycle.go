package scheduler

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/journey"
)

const (
	minFeasible        = 100 // nodes that are looked for at least
	minFeasiblePercent = 5
)

// scheduleOne takes one pod through the scheduling cycle, and starts its binding cycle.
func (s *Scheduler) scheduleOne(ctx context.Context, qp *QueuedPod) {
	p := qp.Info
	f := s.profiles[p.Pod.Spec.SchedulerName]
	if f == nil || s.pointless(f, p) {
		s.queue.Done(p.UID())
		return
	}
	began := time.Now()
	qp.began = began
	if s.traced {
		span := journey.Step(component, "queued", "Pod", p.Pod, qp.Created)
		s.config.Journey.Record(span)
	}

	// 1. Decide.
	state, node, st := s.decide(ctx, f, p)
	if !st.IsSuccess() {
		nominate := &PostFilterResult{}
		if fit := (*FitError)(nil); errors.As(st.Err(), &fit) && len(f.postFilters) > 0 {
			var post *Status
			s.config.Metrics.preempts()
			nominate, post = f.RunPostFilter(ctx, state, p, &fit.Diagnosis)
			fit.Diagnosis.PostFilterMsg = post.Message()
		}
		s.fail(ctx, f, qp, st, nominate)
		return
	}
	decided := time.Now()
	s.config.Metrics.decided(decided.Sub(began))

	// 2. From here on the pod counts as being on the node.
	pod := *p.Pod // shallow: only Spec.NodeName differs
	pod.Spec.NodeName = node
	assumed := p.withPod(&pod)
	if err := s.cache.Assume(assumed); err != nil {
		s.fail(ctx, f, qp, ErrorStatus("", err), &PostFilterResult{})
		return
	}
	s.queue.Nominated.Remove(p.UID())

	// 3. Plug-ins may still say no.
	st = f.runReserve(ctx, state, assumed, node)
	if st.IsSuccess() {
		st = f.runPermit(ctx, state, assumed, node)
	}
	if !st.IsSuccess() && !st.IsWait() {
		f.runUnreserve(ctx, state, assumed, node)
		s.cache.Forget(p.UID())
		s.fail(ctx, f, qp, oneNode(st), &PostFilterResult{})
		return
	}
	if s.traced {
		span := journey.Step(component, "scheduled: filters+scores", "Pod", p.Pod, began)
		span.End, span.Node = decided, node
		s.config.Journey.Record(span)
	}

	// 4. Everything else takes place beside the next pod's cycle.
	s.slots <- struct{}{}
	s.binding.Go(func() {
		s.bind(ctx, f, qp, assumed, state, node, decided)
	})
}

// pointless reports whether the pod needs no scheduling after all.
func (s *Scheduler) pointless(f *Framework, p *PodInfo) bool {
	if p.Pod.DeletionTimestamp != nil {
		f.Recorder.Eventf(p.Pod, nil, v1.EventTypeWarning, "FailedScheduling", "Scheduling",
			"skip schedule deleting pod: %v/%v", p.Pod.Namespace, p.Pod.Name)
		return true
	}
	return s.cache.IsAssumed(p.UID())
}

// oneNode turns a plug-in's rejection after the decision into a FitError about that node.
func oneNode(st *Status) *Status {
	if !st.IsRejected() {
		return st
	}
	e := &FitError{NumNodes: 1}
	e.Diagnosis.Absent = st
	e.Diagnosis.reject(st)
	return rejectStatus(st.Code(), e)
}

// decide picks a node for p. A rejection carries a *FitError or ErrNoNodes.
func (s *Scheduler) decide(ctx context.Context, f *Framework, p *PodInfo) (*CycleState, string, *Status) {
	s.cache.Update(s.snapshot)
	if len(s.snapshot.Nodes) == 0 {
		s.batch.end()
		return f.NewState(), "", rejectStatus(UnschedulableAndUnresolvable, ErrNoNodes)
	}
	if state, node := s.batch.next(s, f, p); node != "" {
		return state, node, nil
	}

	state := f.NewState()
	var d Diagnosis
	names, st := f.RunPreFilter(ctx, state, p, &d)
	if !st.IsSuccess() {
		if !st.IsRejected() {
			return state, "", st
		}
		d.PreFilterMsg, d.Absent = st.Message(), st
		return state, "", s.nowhere(p, &d)
	}

	// A pod for which preemption made room goes there if it fits.
	nodes := s.feasible[:0]
	if name := p.Pod.Status.NominatedNodeName; name != "" {
		if n := s.snapshot.Get(name); n != nil && (names == nil || names.Has(name)) {
			if f.RunFilterWithNominated(state, p, n).IsSuccess() {
				nodes = append(nodes, n)
			}
		}
	}
	if len(nodes) == 0 {
		candidates := s.snapshot.Nodes
		if names != nil {
			candidates = make([]*NodeInfo, 0, len(names))
			for name := range names {
				if n := s.snapshot.Get(name); n != nil {
					candidates = append(candidates, n)
				}
			}
		}
		if nodes, st = s.search(f, state, p, candidates, nodes, &d); !st.IsSuccess() {
			return state, "", st
		}
	}
	s.feasible = nodes
	switch len(nodes) {
	case 0:
		return state, "", s.nowhere(p, &d)
	case 1:
		s.attempts.chosen(p, &d, s.snapshot, nodes, 0, nil, nil)
		return state, nodes[0].Node.Name, nil
	}
	if st := s.board.run(ctx, f, state, p, nodes); !st.IsSuccess() {
		return state, "", st
	}
	best := pick(s.board.total)
	s.attempts.chosen(p, &d, s.snapshot, nodes, best, state.scorers, &s.board)
	if names == nil && p.Pod.Status.NominatedNodeName == "" {
		s.batch.begin(s, f, p, state, nodes)
	}
	return state, nodes[best].Node.Name, nil
}

// nowhere returns the verdict that no node fits.
func (s *Scheduler) nowhere(p *PodInfo, d *Diagnosis) *Status {
	s.batch.end()
	s.verdicts = nil // the error keeps them
	e := &FitError{NumNodes: len(s.snapshot.Nodes), Diagnosis: *d}
	s.attempts.rejected(p, &e.Diagnosis, s.snapshot)
	return rejectStatus(Unschedulable, e)
}

// search filters nodes, from where the previous search ended, until enough fit.
func (s *Scheduler) search(f *Framework, state *CycleState, p *PodInfo, nodes, found []*NodeInfo, d *Diagnosis) ([]*NodeInfo, *Status) {
	if len(nodes) == 0 {
		return found, nil
	}
	enough := feasibleToFind(f.percent, len(nodes))
	if len(f.scorers) == 0 {
		enough = 1
	}
	filter := f.RunFilter
	if s.queue.Nominated.count.Load() > 0 {
		filter = f.RunFilterWithNominated
	}
	if len(s.verdicts) != len(s.snapshot.Nodes) {
		s.verdicts = make([]*Status, len(s.snapshot.Nodes))
	} else {
		clear(s.verdicts)
	}
	d.Nodes = s.verdicts
	looked, first := 0, s.start%len(nodes)
	for ; looked < len(nodes) && len(found) < enough; looked++ {
		i := first + looked
		if i >= len(nodes) {
			i -= len(nodes)
		}
		n := nodes[i]
		st := filter(state, p, n)
		switch {
		case st.IsSuccess():
			found = append(found, n)
		case st.IsRejected():
			d.Nodes[n.Index] = st
			d.reject(st)
		default:
			return found, st
		}
	}
	s.start = (s.start + looked) % len(s.snapshot.Nodes)
	return found, nil
}

// feasibleToFind returns how many feasible nodes end the search among n nodes.
func feasibleToFind(percent, n int) int {
	if n < minFeasible {
		return n
	}
	if percent == 0 {
		percent = max(50-n/125, minFeasiblePercent)
	}
	return max(n*percent/100, minFeasible)
}

// pick returns the index of the highest score, any of them when there are several.
func pick(scores []int64) int {
	best, ties := 0, 1
	for i := 1; i < len(scores); i++ {
		switch {
		case scores[i] > scores[best]:
			best, ties = i, 1
		case scores[i] == scores[best]:
			if ties++; rand.IntN(ties) == 0 {
				best = i
			}
		}
	}
	return best
}
