package scheduler

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leftoverAfter is how long a pod may wait without any event before it is tried again anyway.
const leftoverAfter = 5 * time.Minute

// A QueuedPod is a pod in the Queue.
type QueuedPod struct {
	Info *PodInfo

	Created   time.Time // when the queue first saw the pod
	Timestamp time.Time // when it last entered the queue; orders pods of the same priority
	Attempts  int       // scheduling attempts so far

	Rejectors []string // plug-ins that rejected it in the last attempt
	PendingOn []string // those of Rejectors that answered Pending
	Gate      string   // the PreEnqueue plug-in that keeps it out

	rejected int // attempts in a row that ended with a rejection, for back-off
	failed   int // attempts in a row that ended with an error, for back-off
	expiry   time.Time
	place    place
	index    int       // in its heap
	began    time.Time // when the last attempt began
}

type place int8

const (
	nowhere place = iota // popped
	active               // to be scheduled next
	backoff              // may be scheduled when its back-off has ended
	errored              // as backoff, after an error: never popped early
	waiting              // for an event, or gated
)

// Queue holds the pods that want a node.
//
//	        add                  pop                    no node
//	pod ─────────► active ◄──────────────── (cycle) ──────────────► waiting
//	                  ▲                         │ error                │
//	    back-off ends │                         ▼                      │ event that a
//	                  └───────────────────── backoff ◄─────────────────┘ rejector asked for
//
// When active is empty, pods in back-off are popped early, except after errors
// (KEP-5142: the back-off only protects other pods).
//
// Events that arrive while a pod is in a scheduling cycle are kept until the
// cycle ends: a pod that is then put back has not seen them (KEP-4247).
type Queue struct {
	config queueConfig
	flight inFlight // guarded by mu
	Nominated

	mu         sync.Mutex
	cond       *sync.Cond
	closed     bool                     // guarded by mu
	pods       map[types.UID]*QueuedPod // all but those popped; guarded by mu
	active     podHeap                  // guarded by mu
	backoff    podHeap                  // guarded by mu
	errored    podHeap                  // guarded by mu
	waiting    map[types.UID]*QueuedPod // guarded by mu
	rejectedBy map[string]int           // waiting pods by rejecting plug-in, "" for none; guarded by mu
	timer      *time.Timer              // for the next back-off or leftover; guarded by mu
	due        time.Time                // when timer fires; guarded by mu
}

type queueConfig struct {
	less       func(a, b *QueuedPod) bool
	preEnqueue func(pod *v1.Pod) *Status
	hints      map[string][]pluginHint // by scheduler name
	asked      []ClusterEvent
	initial    time.Duration // back-off after the first failure, doubled after each
	max        time.Duration
	onGated    func(*v1.Pod, *Status)
}

type pluginHint struct {
	plugin string
	EventHint
}

func newQueue(c queueConfig) *Queue {
	q := &Queue{
		config:     c,
		pods:       map[types.UID]*QueuedPod{},
		waiting:    map[types.UID]*QueuedPod{},
		rejectedBy: map[string]int{},
	}
	q.cond = sync.NewCond(&q.mu)
	q.active.less = c.less
	byExpiry := func(a, b *QueuedPod) bool { return a.expiry.Before(b.expiry) }
	q.backoff.less, q.errored.less = byExpiry, byExpiry
	return q
}

// Close ends Pop and stops the timer.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	q.cond.Broadcast()
}

// Add takes a new pending pod.
func (q *Queue) Add(p *PodInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.flight.has(p.UID()) {
		return // put back by the end of its cycle, with the newest version
	}
	if old := q.pods[p.UID()]; old != nil {
		old.Info = p
		return
	}
	now := time.Now()
	q.toActiveLocked(&QueuedPod{Info: p, Created: now, Timestamp: now})
}

// Update takes a newer version of a pending pod.
func (q *Queue) Update(old *v1.Pod, p *PodInfo, actions ActionType) {
	q.mu.Lock()
	event := ClusterEvent{PendingPod, actions}
	if q.flight.has(p.UID()) {
		q.flight.record(event, old, p.Pod)
		q.mu.Unlock()
		return
	}
	qp := q.pods[p.UID()]
	if qp == nil {
		q.mu.Unlock()
		q.Add(p)
		return
	}
	defer q.mu.Unlock()
	before := *qp.Info
	qp.Info = p
	switch qp.place {
	case active:
		if before.Priority != p.Priority {
			q.active.fix(qp)
		}
	case waiting:
		if qp.Gate != "" {
			q.leaveLocked(qp)
			q.toActiveLocked(qp) // asks the gates again
		} else if h := q.worthLocked(qp, event, old, p.Pod); h != skip {
			q.requeueLocked(qp, h)
		}
	}
}

// Delete forgets a pod.
func (q *Queue) Delete(uid types.UID) {
	q.Nominated.Remove(uid)
	q.mu.Lock()
	defer q.mu.Unlock()
	if qp := q.pods[uid]; qp != nil {
		q.leaveLocked(qp)
	}
}

// Pop waits for the next pod and returns it, nil after Close. Done or PutBack must follow.
func (q *Queue) Pop() *QueuedPod {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return nil
		}
		var qp *QueuedPod
		if q.active.Len() > 0 {
			qp = q.active.items[0]
		} else if q.backoff.Len() > 0 {
			qp = q.backoff.items[0]
		}
		if qp != nil {
			q.leaveLocked(qp)
			qp.Attempts++
			qp.Rejectors, qp.PendingOn = nil, nil
			q.flight.start(qp.Info.UID())
			return qp
		}
		q.cond.Wait()
	}
}

// Done ends the cycle of a pod that does not come back by PutBack.
func (q *Queue) Done(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flight.end(uid)
}

// PutBack ends the cycle of a pod that got no node. p is its newest version. failed
// says that it failed with an error rather than being rejected: then it is tried
// again after a back-off without any event.
func (q *Queue) PutBack(qp *QueuedPod, p *PodInfo, failed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	uid := p.UID()
	events := q.flight.since(uid)
	q.flight.end(uid)
	if q.pods[uid] != nil {
		return
	}
	qp.Info = p
	qp.Timestamp = time.Now()
	if failed {
		qp.failed++
		q.placeLocked(qp, errored)
		return
	}
	qp.rejected++
	qp.failed = 0
	hint := skip
	for _, e := range events {
		if h := q.worthLocked(qp, e.event, e.old, e.new); h > hint {
			hint = h
		}
	}
	if hint == skip {
		q.placeLocked(qp, waiting)
		return
	}
	q.pods[uid] = qp
	q.requeueLocked(qp, hint)
}

// Activate moves pods to the active queue at once, if they wait.
func (q *Queue) Activate(uids ...types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, uid := range uids {
		if qp := q.pods[uid]; qp != nil && qp.place != active {
			q.leaveLocked(qp)
			q.toActiveLocked(qp)
		}
	}
}

// Event moves the waiting pods that e may make schedulable.
func (q *Queue) Event(e ClusterEvent, old, new any) {
	if !q.asks(e) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flight.record(e, old, new)
	if len(q.waiting) == 0 || !q.concernsLocked(e) {
		return
	}
	var moved []*QueuedPod
	for _, qp := range q.waiting {
		if qp.Gate == "" && q.worthLocked(qp, e, old, new) != skip {
			moved = append(moved, qp)
		}
	}
	for _, qp := range moved {
		q.requeueLocked(qp, q.worthLocked(qp, e, old, new))
	}
}

// asks reports whether any plug-in wants e: with that, most updates end before the lock.
func (q *Queue) asks(e ClusterEvent) bool {
	return slices.ContainsFunc(q.config.asked, func(want ClusterEvent) bool { return want.matches(e) })
}

// Counts returns the number of active, backing-off and waiting pods.
func (q *Queue) Counts() (activePods, backoffPods, waitingPods int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active.Len(), q.backoff.Len() + q.errored.Len(), len(q.waiting)
}

// toActiveLocked lets the pod into the active queue unless a PreEnqueue plug-in keeps it out.
func (q *Queue) toActiveLocked(qp *QueuedPod) {
	if s := q.config.preEnqueue(qp.Info.Pod); !s.IsSuccess() {
		qp.Gate = s.Plugin()
		qp.Rejectors = addName(qp.Rejectors, s.Plugin())
		q.placeLocked(qp, waiting)
		q.config.onGated(qp.Info.Pod, s)
		return
	}
	if qp.Gate != "" {
		qp.Gate = ""
		qp.Timestamp = time.Now()
	}
	q.placeLocked(qp, active)
}

// placeLocked puts a pod that is nowhere into a place.
func (q *Queue) placeLocked(qp *QueuedPod, where place) {
	q.pods[qp.Info.UID()] = qp
	qp.place = where
	switch where {
	case active:
		q.active.push(qp)
		q.cond.Signal()
	case backoff:
		qp.expiry = q.expiry(qp)
		q.backoff.push(qp)
		q.cond.Signal() // may be popped early
		q.wakeLocked(qp.expiry)
	case errored:
		qp.expiry = q.expiry(qp)
		q.errored.push(qp)
		q.wakeLocked(qp.expiry)
	case waiting:
		q.waiting[qp.Info.UID()] = qp
		q.countLocked(qp, 1)
		if qp.Gate == "" {
			q.wakeLocked(qp.Timestamp.Add(leftoverAfter))
		}
	}
}

// leaveLocked takes a pod out of the queue.
func (q *Queue) leaveLocked(qp *QueuedPod) {
	delete(q.pods, qp.Info.UID())
	switch qp.place {
	case active:
		q.active.remove(qp)
	case backoff:
		q.backoff.remove(qp)
	case errored:
		q.errored.remove(qp)
	case waiting:
		delete(q.waiting, qp.Info.UID())
		q.countLocked(qp, -1)
	}
	qp.place = nowhere
}

func (q *Queue) countLocked(qp *QueuedPod, sign int) {
	if len(qp.Rejectors) == 0 {
		q.rejectedBy[""] += sign
	}
	for _, name := range qp.Rejectors {
		q.rejectedBy[name] += sign
	}
}

// peek returns the pod that Pop would return now, nil when it would wait.
func (q *Queue) peek() *PodInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.active.Len() == 0 {
		return nil
	}
	return q.active.items[0].Info
}
