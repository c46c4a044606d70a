package kubelet

import (
	"sync"
	"time"
)

// backOff delays repeated attempts by key: the first goes through, then the
// delay doubles from initial to most. A key that had no attempt for twice the
// maximum starts again from the beginning.
type backOff struct {
	initial, most time.Duration

	mu      sync.Mutex // guards entries
	entries map[string]backOffEntry
}

type backOffEntry struct {
	delay time.Duration
	last  time.Time // when next was last called
}

func newBackOff(initial, most time.Duration) *backOff {
	return &backOff{initial: initial, most: most, entries: map[string]backOffEntry{}}
}

// remaining returns the key's delay and how much of it is left when it began at since.
func (b *backOff) remaining(key string, since time.Time) (delay, left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	if !ok || since.Sub(e.last) > 2*b.most {
		return 0, 0
	}
	return e.delay, max(0, e.delay-time.Since(since))
}

// Left is remaining for a delay that began with the last attempt.
func (b *backOff) Left(key string) (delay, left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	if !ok {
		return 0, 0
	}
	return e.delay, max(0, e.delay-time.Since(e.last))
}

// Next notes an attempt after an event (exit, failure) at the given time.
func (b *backOff) Next(key string, event time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	switch {
	case !ok || event.Sub(e.last) > 2*b.most:
		e.delay = b.initial
	default:
		e.delay = min(2*e.delay, b.most)
	}
	e.last = time.Now()
	b.entries[key] = e
}

func (b *backOff) forget(keys ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range keys {
		delete(b.entries, k)
	}
}
