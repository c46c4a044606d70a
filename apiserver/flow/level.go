package flow

import (
	"time"
)

// A level is the state of one priority level. All of it is guarded by the
// dispatcher's mutex.
type level struct {
	name    string
	exempt  bool
	nominal int // seats of its own
	lend    int // of which it may lend
	borrow  int // seats that it may borrow; -1: any number
	queues  []*queue
	hand    int // queues that one flow may use
	length  int // requests in one queue, at most
	rejects bool
	gone    bool // its object was deleted: it serves those that it has

	used     int // seats in use by its requests, borrowed ones included
	borrowed int
	lent     int
	waiting  int
	running  int
	virtual  float64 // of the queue that was served last

	dispatched, full, late, cancelled int64
}

// A queue holds requests of flows that were dealt to it. virtual is what they were
// given, in seat-seconds, compared between queues: the one with the least is next.
type queue struct {
	waiters []*Ticket
	running int
	virtual float64
}

// A Ticket is a request's place: in a queue, then on its seats.
type Ticket struct {
	d     *dispatcher
	level *level
	width int
	loans []loan        // seats of other levels
	queue *queue        // nil: it did not wait
	ready chan struct{} // closed when it has its seats
	begun time.Time     // when it got them
	done  bool          // guarded by the dispatcher's mutex
}

type loan struct {
	from  *level
	seats int
}

// guess is how long a request is taken to run until it is known, in seconds.
const guess = 0.003

// free is how many of its own seats a level has left.
func (l *level) free() int { return l.nominal - l.lent - (l.used - l.borrowed) }

// spare is how many seats a level can lend now: none while its own requests wait.
func (l *level) spare() int {
	if l.waiting > 0 {
		return 0
	}
	return max(0, min(l.lend-l.lent, l.free()))
}

// seatLocked gives t its seats if there are enough: the level's own, then others'.
func (d *dispatcher) seatLocked(t *Ticket) bool {
	l := t.level
	if l.exempt { // since it began to wait
		l.used += t.width
		l.running++
		return true
	}
	missing := t.width - max(0, min(t.width, l.free()))
	if missing > 0 {
		if l.borrow >= 0 && l.borrowed+missing > l.borrow {
			return false
		}
		found := 0
		for _, other := range d.order {
			if other != l {
				found += other.spare()
			}
		}
		if found < missing {
			return false
		}
		left := missing
		for _, other := range d.order {
			if n := min(left, other.spare()); other != l && n > 0 {
				other.lent += n
				t.loans = append(t.loans, loan{other, n})
				left -= n
			}
		}
		l.borrowed += missing
	}
	l.used += t.width
	l.running++
	l.dispatched++
	return true
}

// unseatLocked gives t's seats back.
func (d *dispatcher) unseatLocked(t *Ticket) {
	l := t.level
	l.used -= t.width
	l.running--
	for _, o := range t.loans {
		o.from.lent -= o.seats
		l.borrowed -= o.seats
	}
}

// nextLocked serves the queues of a level while there are seats: the queue that got
// least first. A request that needs more seats than are free is waited for.
func (d *dispatcher) nextLocked(l *level) {
	for l.waiting > 0 {
		var q *queue
		for _, other := range l.queues {
			if len(other.waiters) > 0 && (q == nil || other.virtual < q.virtual) {
				q = other
			}
		}
		t := q.waiters[0]
		if !d.seatLocked(t) {
			return
		}
		q.waiters[0] = nil
		q.waiters = q.waiters[1:]
		l.waiting--
		d.waiting--
		l.virtual = q.virtual
		q.virtual += float64(t.width) * guess
		q.running++
		t.begun = time.Now()
		close(t.ready)
	}
}
