package flow

import (
	"time"

	"github.com/periplus/periplus/apiserver/request"
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

	tallies map[string]*tally // by schema
	first   *Ticket           // of those that are served, linked
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
	tally *tally
	state *request.State
	cost  cost
	width int           // seats, of those that the level has
	loans []loan        // seats of other levels
	queue *queue        // nil: it did not wait
	ready chan struct{} // closed when it has its seats
	came  time.Time     // when it began to wait
	begun time.Time     // when it got its seats
	done  bool          // guarded by the dispatcher's mutex

	prev, next *Ticket // of those of its level that are served; guarded as done is
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
	if l.exempt {
		l.takenLocked(t)
		return true
	}
	missing := t.width - max(0, min(t.width, l.free()))
	if missing > 0 {
		if l.borrow >= 0 && l.borrowed+missing > l.borrow {
			t.tally.unseated++
			return false
		}
		found := 0
		for _, other := range d.order {
			if other != l {
				found += other.spare()
			}
		}
		if found < missing {
			t.tally.unseated++
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
	l.takenLocked(t)
	return true
}

// takenLocked notes that t has its seats.
func (l *level) takenLocked(t *Ticket) {
	l.used += t.width
	l.running++
	t.tally.running++
	t.tally.seats += t.width
	t.tally.dispatched++
	if t.next = l.first; t.next != nil {
		t.next.prev = t
	}
	l.first = t
}

// tallyLocked is where the requests of a schema are counted.
func (l *level) tallyLocked(schema string, h *histograms) *tally {
	t := l.tallies[schema]
	if t == nil {
		t = &tally{schema: schema, histograms: h}
		l.tallies[schema] = t
	}
	return t
}

// unseatLocked gives t's seats back.
func (d *dispatcher) unseatLocked(t *Ticket) {
	l := t.level
	l.used -= t.width
	l.running--
	switch {
	case t.prev != nil:
		t.prev.next = t.next
	default:
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
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
		t.leftQueueLocked()
		l.virtual = q.virtual
		q.virtual += float64(t.width) * guess
		q.running++
		t.begun = time.Now()
		close(t.ready)
	}
}
