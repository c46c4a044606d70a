package scheduler

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/base"
)

// fail ends an attempt that gave the pod no node: it puts the pod back into the queue
// and tells the user. nominate is a new nomination, nil to leave it as it is. It is
// called by the scheduling goroutine and by binding goroutines.
func (s *Scheduler) fail(ctx context.Context, f *Framework, qp *QueuedPod, st *Status, nominate *PostFilterResult) {
	p := qp.Info
	if ctx.Err() != nil {
		s.queue.Done(p.UID())
		return
	}
	reason := v1.PodReasonSchedulerError
	var fit *FitError
	switch err := st.Err(); {
	case errors.As(err, &fit):
		reason = v1.PodReasonUnschedulable
		qp.Rejectors, qp.PendingOn = fit.Diagnosis.Rejectors, fit.Diagnosis.PendingOn
	case errors.Is(err, ErrNoNodes):
		reason = v1.PodReasonUnschedulable
	default:
		s.log.Warn("scheduling attempt failed", base.KeyPod, p.Pod.Namespace+"/"+p.Pod.Name, base.KeyError, err)
	}
	message := st.Err().Error()
	if reason == v1.PodReasonUnschedulable {
		s.config.Metrics.tried("unschedulable", f.Name, qp)
	} else {
		s.config.Metrics.tried("error", f.Name, qp)
	}

	// The informer has the newest version; the pod may be gone or bound by now.
	live, err := s.config.Informers.Core().V1().Pods().Lister().Pods(p.Pod.Namespace).Get(p.Pod.Name)
	if err != nil || live.UID != p.Pod.UID || live.Spec.NodeName != "" {
		s.queue.Done(p.UID())
		return
	}
	info := p
	if live != p.Pod {
		info = NewPodInfo(live, s.table)
	}
	if nominate != nil {
		s.queue.Nominate(info, nominate.Nominated)
	}
	s.queue.PutBack(qp, info, reason == v1.PodReasonSchedulerError)

	f.Recorder.Eventf(p.Pod, nil, v1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", shortNote(message))
	s.writer.Condition(live, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: live.Generation,
	}, nominate)
}
