package journey_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/journey"
)

// A receiver is a server that takes batches, or not.
type receiver struct {
	mu    sync.Mutex
	err   error
	tries int
	got   []journey.Batch
}

func (r *receiver) post(_ context.Context, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tries++; r.err != nil {
		return r.err
	}
	var b journey.Batch
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	r.got = append(r.got, b)
	return nil
}

func (r *receiver) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// state returns how often it was tried, how many spans came, and how many were dropped.
func (r *receiver) state() (tries, spans, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.got {
		spans += len(b.Spans)
		dropped += b.Dropped
	}
	return r.tries, spans, dropped
}

func run(t *testing.T, test func(t *testing.T, r *receiver, remote *journey.Remote)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		remote := journey.NewRemote(r.post)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- remote.Run(ctx) }()
		test(t, r, remote)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// wait lets time pass in the bubble.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestBatches: steps that come together go together, and nothing goes while nothing comes.
func TestBatches(t *testing.T) {
	run(t, func(t *testing.T, r *receiver, remote *journey.Remote) {
		for i := range 10 {
			remote.Record(span(fmt.Sprint(i), time.Now()))
		}
		wait(time.Second)
		if tries, spans, _ := r.state(); tries != 1 || spans != 10 {
			t.Errorf("%d steps in %d batches", spans, tries)
		}
		wait(time.Hour)
		if tries, _, _ := r.state(); tries != 1 {
			t.Errorf("%d tries after an idle hour", tries)
		}
		for range 100 {
			remote.Record(span("more", time.Now()))
			wait(10 * time.Millisecond)
		}
		wait(time.Second)
		if tries, spans, _ := r.state(); spans != 110 || tries > 7 {
			t.Errorf("a step each 10 ms for a second: %d batches, %d steps", tries-1, spans-10)
		}
	})
}

// TestAway: while the server is away steps wait, and no more than the queue holds.
func TestAway(t *testing.T) {
	run(t, func(t *testing.T, r *receiver, remote *journey.Remote) {
		r.set(errors.New("connection refused"))
		remote.Record(span("first", time.Now()))
		wait(10 * time.Minute)
		if tries, _, _ := r.state(); tries < 5 || tries > 40 {
			t.Errorf("%d tries in ten minutes", tries)
		}
		for range 10000 {
			remote.Record(span("later", time.Now()))
		}
		r.set(nil)
		wait(time.Minute)
		if _, spans, dropped := r.state(); spans != 4096 || dropped != 10001-4096 {
			t.Errorf("%d steps came and %d are known to be lost, want 4096 and %d", spans, dropped, 10001-4096)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.got[0].Spans[0].Step != "first" {
			t.Errorf("the first to come was %s", r.got[0].Spans[0].Step)
		}
	})
}

// TestRefused: what the server does not want is not sent again.
func TestRefused(t *testing.T) {
	run(t, func(t *testing.T, r *receiver, remote *journey.Remote) {
		r.set(apierrors.NewNotFound(schema.GroupResource{}, "spans"))
		remote.Record(span("a", time.Now()))
		wait(time.Hour)
		if tries, _, _ := r.state(); tries != 1 {
			t.Errorf("%d tries", tries)
		}
	})
}
