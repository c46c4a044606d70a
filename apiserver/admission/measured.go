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
	last            time.Time
}

func watch(ctx context.Context, a *Attributes, step string) stopwatch {
	w := stopwatch{metrics: request.Metrics(ctx), step: step, operation: string(a.Operation)}
	if w.metrics != nil {
		w.last = time.Now()
	}
	return w
}

// asked notes that a plug-in has answered.
func (w *stopwatch) asked(p Plugin, err error) {
	if w.metrics == nil {
		return
	}
	now := time.Now()
	w.metrics.Plugin(p.Name(), w.step, w.operation, err != nil, now.Sub(w.last))
	w.last = now
}
