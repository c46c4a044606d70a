package journey

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
)

const (
	// queueSize bounds the spans that wait to be sent; more are dropped.
	queueSize = 1024
	// linger is how long the first span of a batch waits for others.
	linger = 20 * time.Millisecond
)

// A Remote is the Recorder of a process that is not the API server's: it sends
// spans in batches. Spans that cannot be sent are lost; nothing waits for them.
type Remote struct {
	queue chan Span
	post  func(ctx context.Context, body []byte) error
}

var _ Recorder = (*Remote)(nil)

// NewRemote returns a recorder that hands batches (JSON arrays of spans) to post.
func NewRemote(post func(ctx context.Context, body []byte) error) *Remote {
	return &Remote{make(chan Span, queueSize), post}
}

// Record implements Recorder.
func (r *Remote) Record(s Span) {
	select {
	case r.queue <- s:
	default:
	}
}

// Run sends until ctx ends.
func (r *Remote) Run(ctx context.Context) error {
	for {
		var batch []Span
		select {
		case <-ctx.Done():
			return nil
		case s := <-r.queue:
			batch = append(batch, s)
		}
		timer := time.NewTimer(linger)
		for wait := true; wait && len(batch) < queueSize; {
			select {
			case s := <-r.queue:
				batch = append(batch, s)
			case <-timer.C:
				wait = false
			case <-ctx.Done():
				wait = false
			}
		}
		timer.Stop()
		var body bytes.Buffer
		if json.NewEncoder(&body).Encode(batch) == nil {
			// Lost spans make a journey incomplete and nothing else.
			_ = r.post(ctx, body.Bytes())
		}
	}
}
