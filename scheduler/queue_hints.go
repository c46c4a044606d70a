package scheduler

import (
	"container/list"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// hint is what an event means for a waiting pod, weakest first.
type hint int8

const (
	skip  hint = iota // it goes on waiting
	later             // try it when its back-off has ended
	now               // try it at once
)

// worthLocked asks the plug-ins that rejected the pod about an event.
func (q *Queue) worthLocked(qp *QueuedPod, e ClusterEvent, old, new any) hint {
	if len(qp.Rejectors) == 0 {
		return later // nobody knows what it waits for
	}
	best := skip
	for _, h := range q.config.hints[qp.Info.Pod.Spec.SchedulerName] {
		if !h.Event.matches(e) || !slices.Contains(qp.Rejectors, h.plugin) {
			continue
		}
		if h.Worth != nil && !h.Worth(qp.Info, old, new) {
			continue
		}
		if slices.Contains(qp.PendingOn, h.plugin) {
			return now
		}
		best = later
	}
	return best
}

// concernsLocked reports whether any waiting pod was rejected by a plug-in that asks for e.
func (q *Queue) concernsLocked(e ClusterEvent) bool {
	if q.rejectedBy[""] > 0 {
		return true
	}
	for _, hints := range q.config.hints {
		for i := range hints {
			if q.rejectedBy[hints[i].plugin] > 0 && hints[i].Event.matches(e) {
				return true
			}
		}
	}
	return false
}

// inFlight remembers the events that arrived since each popped pod was popped:
//
//	pod A ─ event ─ event ─ pod B ─ event
//
// A pod's events are those behind its mark. Events before the first mark are dropped.
type inFlight struct {
	order list.List // of types.UID marks and inFlightEvents
	marks map[types.UID]*list.Element
}

type inFlightEvent struct {
	event    ClusterEvent
	old, new any
}

func (f *inFlight) has(uid types.UID) bool { return f.marks[uid] != nil }

func (f *inFlight) start(uid types.UID) {
	if f.marks == nil {
		f.marks = map[types.UID]*list.Element{}
	}
	f.marks[uid] = f.order.PushBack(uid)
}

func (f *inFlight) record(e ClusterEvent, old, new any) {
	if len(f.marks) > 0 {
		f.order.PushBack(inFlightEvent{e, old, new})
	}
}

func (f *inFlight) since(uid types.UID) (events []inFlightEvent) {
	mark := f.marks[uid]
	if mark == nil {
		return nil
	}
	for el := mark.Next(); el != nil; el = el.Next() {
		if e, ok := el.Value.(inFlightEvent); ok {
			events = append(events, e)
		}
	}
	return events
}

func (f *inFlight) end(uid types.UID) {
	mark := f.marks[uid]
	if mark == nil {
		return
	}
	delete(f.marks, uid)
	f.order.Remove(mark)
	for el := f.order.Front(); el != nil; el = f.order.Front() {
		if _, event := el.Value.(inFlightEvent); !event {
			return
		}
		f.order.Remove(el)
	}
}
