package journey

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// queueSize bounds the spans that wait to be sent, also while the server cannot be
	// reached; more are dropped, and counted.
	queueSize = 4096
	// batchSize bounds the spans of one batch: its body stays below maxPost.
	batchSize = 256
	// linger is how long the first span of a batch waits for others; lingerBusy the
	// same when a batch has just been sent: at most four a second.
	linger     = 30 * time.Millisecond
	lingerBusy = 250 * time.Millisecond
	// A batch that could not be sent is tried again after retryMin, doubled up to retryMax.
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
	// postTimeout bounds one try.
	postTimeout = 10 * time.Second
)

// A Remote is the Recorder of a process that is not the API server's: it sends
// spans in batches, later if the server cannot be reached. It costs nothing while
// nothing is recorded.
type Remote struct {
	post func(ctx context.Context, body []byte) error
	wake chan struct{} // holds one token while there is something to send

	mu      sync.Mutex // guards what follows
	queue   []Span
	dropped int

	// Of Run's goroutine.
	rtt  time.Duration // of the batch sent at of
	of   time.Time
	sent time.Time // when the last try ended
}

var _ Recorder = (*Remote)(nil)

// NewRemote returns a recorder that hands batches (a Batch as JSON) to post. An error
// that is an API status of bad request, not found or the like means that the batch is
// not wanted; after others it is tried again.
func NewRemote(post func(ctx context.Context, body []byte) error) *Remote {
	return &Remote{post: post, wake: make(chan struct{}, 1)}
}

// Record implements Recorder.
func (r *Remote) Record(s Span) {
	r.mu.Lock()
	if len(r.queue) < queueSize {
		r.queue = append(r.queue, s)
	} else {
		r.dropped++
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends.
func (r *Remote) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
		wait := linger
		if time.Since(r.sent) < time.Second {
			wait = lingerBusy
		}
		if !pause(ctx, wait) || !r.drain(ctx) {
			return nil
		}
	}
}

// drain sends all that waits; false: ctx has ended.
func (r *Remote) drain(ctx context.Context) bool {
	delay := retryMin
	for {
		r.mu.Lock()
		n := min(len(r.queue), batchSize)
		batch := Batch{RTT: r.rtt, Of: r.of, Dropped: r.dropped, Spans: r.queue[:n:n]}
		r.mu.Unlock()
		if n == 0 {
			return true
		}
		err := r.send(ctx, &batch)
		if err != nil && !refused(err) {
			if !pause(ctx, delay) {
				return false
			}
			delay = min(2*delay, retryMax)
			continue
		}
		delay = retryMin
		r.mu.Lock()
		r.queue = r.queue[n:]
		r.dropped -= batch.Dropped
		if len(r.queue) == 0 {
			r.queue = nil // the array behind it has had its day
		}
		r.mu.Unlock()
	}
}

func (r *Remote) send(ctx context.Context, b *Batch) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	b.Sent = time.Now()
	body, err := json.Marshal(b)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	err = r.post(ctx, body)
	r.sent = time.Now()
	if err == nil {
		r.rtt, r.of = max(r.sent.Sub(b.Sent), time.Microsecond), b.Sent
	}
	return err
}

// refused says that trying again is of no use.
func refused(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
