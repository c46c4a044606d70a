package scheduler

import "time"

// expiry returns when the pod may be tried again: 1 s after the first failure in a
// row, then 2 s, 4 s, 8 s, and 10 s from then on.
func (q *Queue) expiry(qp *QueuedPod) time.Time {
	n := qp.rejected
	if qp.failed > 0 {
		n = qp.failed
	}
	if n == 0 {
		return qp.Timestamp
	}
	d := q.config.initial
	for range n - 1 {
		if d *= 2; d >= q.config.max {
			break
		}
	}
	return qp.Timestamp.Add(min(d, q.config.max))
}

// requeueLocked moves a pod on after an event.
func (q *Queue) requeueLocked(qp *QueuedPod, h hint) {
	if qp.place != nowhere {
		q.leaveLocked(qp)
	}
	if h == now || !q.expiry(qp).After(time.Now()) {
		q.toActiveLocked(qp)
		return
	}
	if s := q.config.preEnqueue(qp.Info.Pod); !s.IsSuccess() {
		q.toActiveLocked(qp) // ends gated
		return
	}
	q.placeLocked(qp, backoff)
}

// wakeLocked makes sure that the timer fires at t or before. There is no timer while
// no pod backs off or waits.
func (q *Queue) wakeLocked(t time.Time) {
	if q.closed || !q.due.IsZero() && !t.Before(q.due) {
		return
	}
	q.due = t
	d := time.Until(t)
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.expire)
		return
	}
	q.timer.Reset(d)
}

// expire runs when the timer fires: it moves what is due and sets the timer for what is next.
func (q *Queue) expire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	t := time.Now()
	q.due = time.Time{}
	for _, h := range []*podHeap{&q.backoff, &q.errored} {
		for h.Len() > 0 && !h.items[0].expiry.After(t) {
			qp := h.items[0]
			q.leaveLocked(qp)
			q.toActiveLocked(qp)
		}
		if h.Len() > 0 {
			q.wakeLocked(h.items[0].expiry)
		}
	}
	var due []*QueuedPod
	for _, qp := range q.waiting {
		if qp.Gate != "" {
			continue
		}
		if at := qp.Timestamp.Add(leftoverAfter); at.After(t) {
			q.wakeLocked(at)
		} else {
			due = append(due, qp)
		}
	}
	for _, qp := range due {
		q.requeueLocked(qp, later)
	}
}
