package admission

import (
	"context"
	"time"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/request"
)

// measured asks the plug-ins of a step and counts how that went.
func measured(ctx context.Context, a *Attributes, step string, ask func() error) error {
	m := request.Metrics(ctx)
	if m == nil {
		return ask()
	}
	start := time.Now()
	err := ask()
	m.Step(step, string(a.Operation), err != nil, time.Since(start))
	return err
}

// A stopwatch measures plug-ins that are asked one after the other: the time is read
// once between two of them.
type stopwatch struct {
	metrics         *measure.Metrics
	step, operation string
	begun           time.Time
	last            time.Duration // since then
}

func watch(ctx context.Context, a *Attributes, step string) stopwatch {
	w := stopwatch{metrics: request.Metrics(ctx), step: step, operation: string(a.Operation)}
	if w.metrics != nil {
		w.begun = time.Now()
	}
	return w
}

// asked notes that the plug-in at a place has answered.
func (w *stopwatch) asked(place int, p Plugin, err error) {
	if w.metrics == nil {
		return
	}
	now := time.Since(w.begun) // cheaper than the time of day
	w.metrics.Plugin(place, p.Name(), w.step, w.operation, err != nil, now-w.last)
	w.last = now
}
