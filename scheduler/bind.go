package scheduler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/journey"
)

// bind takes an assumed pod through the binding cycle, in a goroutine of its own. It
// holds one of Scheduler.slots, but not while Permit holds the pod.
func (s *Scheduler) bind(ctx context.Context, f *Framework, qp *QueuedPod, p *PodInfo, state *CycleState, node string, decided time.Time) {
	free := func() { <-s.slots }
	if h := f.held.get(p.UID()); h != nil {
		free()
		st := f.held.wait(ctx, p.UID())
		s.slots <- struct{}{}
		if !st.IsSuccess() {
			s.unbind(ctx, f, qp, p, state, node, oneNode(st))
			free()
			return
		}
	}
	defer free()

	// Rejections are over: events no longer matter to this pod.
	s.queue.Done(p.UID())
	// A condition from an earlier attempt must not overtake the binding.
	s.writer.Settle(p.UID())

	st := f.runPreBind(ctx, state, p, node)
	if st.IsSuccess() {
		st = f.runBind(ctx, state, p, node)
	}
	if !st.IsSuccess() {
		s.unbind(ctx, f, qp, p, state, node, st)
		return
	}
	s.config.Metrics.bound(f.Name, qp)
	f.Recorder.Eventf(p.Pod, nil, v1.EventTypeNormal, "Scheduled", "Binding",
		"Successfully assigned %v/%v to %v", p.Pod.Namespace, p.Pod.Name, node)
	if s.traced {
		span := journey.Step(component, "bound", "Pod", p.Pod, decided)
		span.Node = node
		s.config.Journey.Record(span)
	}
	f.runPostBind(ctx, state, p, node)
}

// unbind undoes an assumption and hands the pod to the failure handler.
func (s *Scheduler) unbind(ctx context.Context, f *Framework, qp *QueuedPod, p *PodInfo, state *CycleState, node string, st *Status) {
	f.runUnreserve(ctx, state, p, node)
	forgotten := s.cache.Forget(p.UID())
	s.fail(ctx, f, qp, st, &PostFilterResult{})
	if forgotten {
		// What the pod held is free again.
		s.queue.Event(ClusterEvent{AssignedPod, Delete}, p.Pod, nil)
	}
}
