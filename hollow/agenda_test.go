package hollow

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A note is an actor that notes when it acts.
type note struct {
	entry
	began time.Time
	mu    *sync.Mutex
	log   *[]time.Duration
	take  time.Duration
}

func (n *note) act(ctx context.Context) {
	n.mu.Lock()
	*n.log = append(*n.log, time.Since(n.began))
	n.mu.Unlock()
	select {
	case <-time.After(n.take):
	case <-ctx.Done():
	}
}

func TestAgenda(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a := newAgenda(10 * time.Millisecond)
		var mu sync.Mutex
		var log []time.Duration
		begin := time.Now()
		notes := make([]*note, 6)
		for i := range notes {
			notes[i] = &note{began: begin, mu: &mu, log: &log, take: 50 * time.Millisecond}
		}
		ended := make(chan error)
		go func() { ended <- a.run(ctx, 2) }()
		// Three at almost the same time, of which two have a worker.
		a.at(&notes[0].entry, notes[0], begin.Add(101*time.Millisecond))
		a.at(&notes[1].entry, notes[1], begin.Add(105*time.Millisecond))
		a.at(&notes[2].entry, notes[2], begin.Add(109*time.Millisecond))
		a.at(&notes[3].entry, notes[3], begin.Add(time.Second))
		a.at(&notes[4].entry, notes[4], begin.Add(time.Second))
		a.at(&notes[5].entry, notes[5], begin.Add(time.Minute))
		time.Sleep(time.Millisecond)
		a.at(&notes[3].entry, notes[3], begin.Add(500*time.Millisecond)) // earlier
		a.drop(&notes[4].entry)
		a.at(&notes[5].entry, notes[5], begin.Add(2*time.Second))
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want := []time.Duration{110, 110, 160, 500, 2000}
		if len(log) != len(want) {
			t.Fatalf("acted at %v", log)
		}
		for i := range want {
			if log[i] != want[i]*time.Millisecond {
				t.Errorf("acted at %v, want %v ms", log, want)
				break
			}
		}
	})
}
