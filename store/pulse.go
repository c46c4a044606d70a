package store

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// A Pulse is a store that notes whether it answers, so that others need not ask
// it, and whose writes outlive those who wanted them: a client that goes away
// between a reservation and the write must not leave one without the other.
type Pulse struct {
	Store
	log    *slog.Logger
	silent atomic.Pointer[Silence]
}

// A Silence is the time in which a store has not answered.
type Silence struct {
	Since time.Time
	Err   error // of the first call that failed
}

// NewPulse returns s with a pulse.
func NewPulse(s Store, log *slog.Logger) *Pulse { return &Pulse{Store: s, log: log} }

// Silent returns since when the store has not answered; nil if it did when it
// was last asked.
func (p *Pulse) Silent() *Silence { return p.silent.Load() }

// Unwrap returns the store itself.
func (p *Pulse) Unwrap() Store { return p.Store }

// patience is how long a call must have lasted for the end of its time to say
// anything about the store.
const patience = time.Second

// heard notes the outcome of a call that began at start. That somebody did not want
// to wait says nothing.
func (p *Pulse) heard(start time.Time, err error) {
	late := errors.Is(err, context.DeadlineExceeded)
	switch {
	case errors.Is(err, context.Canceled), late && time.Since(start) < patience:
	case late, errors.Is(err, ErrUnavailable):
		if p.silent.CompareAndSwap(nil, &Silence{Since: time.Now(), Err: err}) {
			p.log.Error("The store does not answer: nothing can be written, reads are of what was known before.", "error", err)
		}
	case p.silent.Load() != nil:
		if s := p.silent.Swap(nil); s != nil {
			p.log.Info("The store answers again.", "after", time.Since(s.Since))
		}
	}
}

// lasting returns a context that ends when the time of ctx is up, not when the one
// behind it goes away.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

func (p *Pulse) write(ctx context.Context, do func(ctx context.Context) (int64, error)) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ctx, cancel := lasting(ctx)
	defer cancel()
	start := time.Now()
	rev, err := do(ctx)
	p.heard(start, err)
	return rev, err
}

// Create implements Store.
func (p *Pulse) Create(ctx context.Context, key string, value []byte) (int64, error) {
	return p.write(ctx, func(ctx context.Context) (int64, error) { return p.Store.Create(ctx, key, value) })
}

// Update implements Store.
func (p *Pulse) Update(ctx context.Context, key string, value []byte, mod int64) (int64, error) {
	return p.write(ctx, func(ctx context.Context) (int64, error) { return p.Store.Update(ctx, key, value, mod) })
}

// Delete implements Store.
func (p *Pulse) Delete(ctx context.Context, key string, mod int64) (int64, error) {
	return p.write(ctx, func(ctx context.Context) (int64, error) { return p.Store.Delete(ctx, key, mod) })
}

// Commit implements Store.
func (p *Pulse) Commit(ctx context.Context, ops ...Op) (int64, error) {
	return p.write(ctx, func(ctx context.Context) (int64, error) { return p.Store.Commit(ctx, ops...) })
}

// Get implements Store.
func (p *Pulse) Get(ctx context.Context, key string) (Entry, error) {
	start := time.Now()
	e, err := p.Store.Get(ctx, key)
	p.heard(start, err)
	return e, err
}

// List implements Store.
func (p *Pulse) List(ctx context.Context, prefix string, o ListOptions) (ListResult, error) {
	start := time.Now()
	r, err := p.Store.List(ctx, prefix, o)
	p.heard(start, err)
	return r, err
}

// Revision implements Store.
func (p *Pulse) Revision(ctx context.Context) (int64, error) {
	start := time.Now()
	rev, err := p.Store.Revision(ctx)
	p.heard(start, err)
	return rev, err
}

// Watch implements Store.
func (p *Pulse) Watch(ctx context.Context, prefix string, after int64, handle func([]Event, int64)) error {
	start := time.Now()
	err := p.Store.Watch(ctx, prefix, after, func(events []Event, rev int64) {
		p.heard(start, nil)
		handle(events, rev)
	})
	if ctx.Err() == nil {
		p.heard(start, err)
	}
	return err
}
