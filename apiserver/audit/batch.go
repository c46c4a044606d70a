package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// errFull is returned for events that are dropped.
var errFull = errors.New("too many audit events wait: the event is dropped")

// A batcher collects events for a sink that is slow. While there are none it waits
// without a timer.
type batcher struct {
	next  Sink
	in    chan *auditv1.Event
	size  int
	wait  time.Duration
	limit *rate.Limiter // nil: none
	log   *slog.Logger
}

// batching says how a sink is written to in batches.
type batching struct {
	buffer, size int // events: that wait, and of one batch
	wait         time.Duration
	throttle     bool
	qps          float32 // batches a second
	burst        int
}

var _ Sink = (*batcher)(nil)

func newBatcher(next Sink, b batching, log *slog.Logger) *batcher {
	out := &batcher{next: next, in: make(chan *auditv1.Event, b.buffer), size: b.size, wait: b.wait, log: log}
	if b.throttle {
		out.limit = rate.NewLimiter(rate.Limit(b.qps), b.burst)
	}
	return out
}

// Write implements Sink. It never blocks.
func (b *batcher) Write(events ...*auditv1.Event) error {
	for _, e := range events {
		select {
		case b.in <- e:
		default:
			return errFull
		}
	}
	return nil
}

// Run implements Sink: what waits when ctx ends is still written.
func (b *batcher) Run(ctx context.Context) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.next.Run(inner) }()
	for ctx.Err() == nil {
		b.write(b.slowly(ctx, b.collect(ctx)))
	}
	for len(b.in) > 0 {
		b.write(b.collect(ctx))
	}
	stop()
	return <-done
}

// slowly waits until another batch may be written; at the end it may at once.
func (b *batcher) slowly(ctx context.Context, events []*auditv1.Event) []*auditv1.Event {
	if b.limit != nil && len(events) > 0 {
		_ = b.limit.Wait(ctx) // its only error is that of ctx
	}
	return events
}

// collect waits for an event and a while for more.
func (b *batcher) collect(ctx context.Context) []*auditv1.Event {
	var out []*auditv1.Event
	var late <-chan time.Time
	for len(out) < b.size {
		select { // what is there comes first, also at the end
		case e := <-b.in:
			out = append(out, e)
			continue
		default:
		}
		if len(out) > 0 && b.wait == 0 {
			return out
		}
		if len(out) > 0 && late == nil {
			timer := time.NewTimer(b.wait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case e := <-b.in:
			out = append(out, e)
		case <-late:
			return out
		case <-ctx.Done():
			return out
		}
	}
	return out
}

func (b *batcher) write(events []*auditv1.Event) {
	if len(events) == 0 {
		return
	}
	if err := b.next.Write(events...); err != nil {
		b.log.Error("Audit events could not be written and are lost.", "count", len(events), "error", err)
	}
}
