package request

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/apiserver/measure"
)

// Metrics returns where the request that ctx belongs to is measured; nil, which measures
// nothing, outside a request.
func Metrics(ctx context.Context) *measure.Metrics {
	if s := From(ctx); s != nil {
		return s.Metrics
	}
	return nil
}

// Elsewhere is the time that a request spent waiting: in a queue, for webhooks that are
// asked one after the other, and for those that are asked at once.
type Elsewhere struct{ waited, atOnce atomic.Int64 }

// Waited adds time.
func (e *Elsewhere) Waited(d time.Duration) { e.waited.Add(int64(d)) }

// AtOnce notes one of several waits that are side by side: the longest counts.
func (e *Elsewhere) AtOnce(d time.Duration) {
	for {
		before := e.atOnce.Load()
		if int64(d) <= before || e.atOnce.CompareAndSwap(before, int64(d)) {
			return
		}
	}
}

// Total is the time so far.
func (e *Elsewhere) Total() time.Duration { return time.Duration(e.waited.Load() + e.atOnce.Load()) }
