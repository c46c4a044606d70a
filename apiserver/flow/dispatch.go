package flow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

var (
	// errFull is returned when a level does not let requests wait, or too many do.
	errFull = errors.New("queue-full")
	// errLate is returned when a request has waited for as long as it may.
	errLate = errors.New("time-out")
	// errGone is returned when the client did not want to wait any longer.
	errGone = errors.New("cancelled")
)

// A dispatcher hands out seats.
type dispatcher struct {
	mu      sync.Mutex // guards all levels and what follows
	levels  map[string]*level
	order   []*level // by name
	waiting int      // requests in all queues
}

// enter returns when a request has its seats, or why it does not get them. hash is
// asked for only if it has to wait.
func (d *dispatcher) enter(ctx context.Context, name string, width int, hash func() uint64, patience time.Duration) (*Ticket, error) {
	d.mu.Lock()
	l := d.levels[name]
	if l == nil || l.exempt {
		d.mu.Unlock()
		return nil, nil
	}
	t := &Ticket{d: d, level: l, width: max(1, min(width, l.nominal))}
	if l.waiting == 0 && d.seatLocked(t) {
		d.mu.Unlock()
		return t, nil
	}
	if l.rejects || len(l.queues) == 0 {
		l.full++
		d.mu.Unlock()
		return nil, errFull
	}
	t.queue = l.deal(hash())
	q := t.queue
	if len(q.waiters) >= l.length {
		l.full++
		d.mu.Unlock()
		return nil, errFull
	}
	if len(q.waiters) == 0 && q.running == 0 {
		q.virtual = max(q.virtual, l.virtual) // an absence earns nothing
	}
	t.ready = make(chan struct{})
	q.waiters = append(q.waiters, t)
	l.waiting++
	d.waiting++
	d.mu.Unlock()
	return t, t.wait(ctx, patience)
}

// wait returns when t has its seats, or gives up.
func (t *Ticket) wait(ctx context.Context, patience time.Duration) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	err := errLate
	select {
	case <-t.ready:
		return nil
	case <-limit.C:
	case <-ctx.Done():
		err = errGone
	}
	d, l := t.d, t.level
	d.mu.Lock()
	select {
	case <-t.ready: // just now
		d.mu.Unlock()
		return nil
	default:
	}
	q := t.queue
	if i := slices.Index(q.waiters, t); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
		l.waiting--
		d.waiting--
	}
	t.done = true
	if errors.Is(err, errLate) {
		l.late++
	} else {
		l.cancelled++
	}
	d.nextLocked(l) // it may have been in the way of smaller ones
	d.mu.Unlock()
	return err
}

// Leave gives the seats back. It may be called more than once, and of nil.
func (t *Ticket) Leave() {
	if t == nil {
		return
	}
	d := t.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.done {
		return
	}
	t.done = true
	d.unseatLocked(t)
	if q := t.queue; q != nil {
		q.running--
		q.virtual += float64(t.width) * (time.Since(t.begun).Seconds() - guess)
	}
	if d.waiting == 0 {
		return
	}
	for _, o := range t.loans { // whose seats they were comes first
		d.nextLocked(o.from)
	}
	d.nextLocked(t.level)
	for _, l := range d.order {
		d.nextLocked(l)
	}
}

// deal returns the queue for a flow: of its hand, the one with the fewest requests.
// The hand is dealt without replacement from the digits of the hash.
func (l *level) deal(hash uint64) *queue {
	n := len(l.queues)
	var best *queue
	least := 0
	var dealt [64]int // in ascending order
	for i := range min(l.hand, n, len(dealt)) {
		card := int(hash % uint64(n-i))
		hash /= uint64(n - i)
		at := 0
		for ; at < i && dealt[at] <= card; at++ {
			card++
		}
		copy(dealt[at+1:i+1], dealt[at:i])
		dealt[at] = card
		q := l.queues[card]
		if load := len(q.waiters) + q.running; best == nil || load < least {
			best, least = q, load
		}
	}
	return best
}
