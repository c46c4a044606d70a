package flow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/periplus/periplus/base/metric"
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
	histograms *metric.Family[*histograms]

	mu      sync.Mutex // guards all levels and what follows
	levels  map[string]*level
	order   []*level // by name
	waiting int      // requests in all queues
}

// enter returns when a request has its seats, or why it does not get them. hash is
// asked for only if it has to wait.
func (d *dispatcher) enter(ctx context.Context, t *Ticket, name, schema string, h *histograms, hash func() uint64, patience time.Duration) error {
	h.began(&t.cost)
	d.mu.Lock()
	l := d.levels[name]
	if l == nil {
		d.mu.Unlock()
		t.done = true
		return nil
	}
	t.level, t.width, t.tally, t.came = l, max(1, t.cost.width()), l.tallyLocked(schema, h), time.Now()
	if !l.exempt {
		t.width = max(1, min(t.width, l.nominal))
	}
	t.begun = t.came
	if (l.waiting == 0 || l.exempt) && d.seatLocked(t) {
		d.mu.Unlock()
		return nil
	}
	if l.rejects || len(l.queues) == 0 {
		t.tally.full++
		d.mu.Unlock()
		return errFull
	}
	t.queue = l.deal(hash())
	q := t.queue
	if len(q.waiters) >= l.length {
		t.tally.full++
		d.mu.Unlock()
		return errFull
	}
	if len(q.waiters) == 0 && q.running == 0 {
		q.virtual = max(q.virtual, l.virtual) // an absence earns nothing
	}
	t.ready = make(chan struct{})
	q.waiters = append(q.waiters, t)
	length := len(q.waiters)
	l.waiting++
	d.waiting++
	t.tally.waiting++
	t.tally.waitingSeats += t.width
	d.mu.Unlock()
	h.queue.Observe(float64(length))
	waits := t.state.Metrics.InQueue(t.cost.watchers >= 0)
	waits.Up(t.came)
	err := t.wait(ctx, patience)
	waits.Down()
	took := time.Since(t.came)
	t.state.Elsewhere.Waited(took)
	if err != nil {
		h.refused.Observe(took.Seconds())
		return err
	}
	h.waited.Observe(took.Seconds())
	return nil
}

// leftQueueLocked counts t out of those that wait.
func (t *Ticket) leftQueueLocked() {
	t.level.waiting--
	t.d.waiting--
	t.tally.waiting--
	t.tally.waitingSeats -= t.width
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
		t.leftQueueLocked()
	}
	t.done = true
	if errors.Is(err, errLate) {
		t.tally.late++
	} else {
		t.tally.cancelled++
	}
	d.nextLocked(l) // it may have been in the way of smaller ones
	d.mu.Unlock()
	return err
}

// Leave gives the seats back; those of a write that many watch after they have been told.
// It may be called more than once, and of nil.
func (t *Ticket) Leave() {
	if t == nil {
		return
	}
	d := t.d
	d.mu.Lock()
	if t.done {
		d.mu.Unlock()
		return
	}
	t.done = true
	t.tally.running--
	t.tally.seats -= t.width
	later := t.cost.after > 0 && !t.level.exempt
	if !later {
		t.releaseLocked()
	}
	d.mu.Unlock()
	t.tally.ended(t.state.Info.Verb == "watch", time.Since(t.begun))
	if later {
		time.AfterFunc(t.cost.lasts, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			t.releaseLocked()
		})
	}
}

// releaseLocked lets others have t's seats.
func (t *Ticket) releaseLocked() {
	d := t.d
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
