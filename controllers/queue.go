package controllers

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

// Queue is a work queue of keys: a key waits in it at most once, and is never
// with two workers at a time. It is client-go's queue with delays of its own: one
// timer for each waiting key and none otherwise, where client-go's delaying queue
// wakes up every ten seconds.
type Queue struct {
	queue workqueue.TypedInterface[Key]
	clock clock.WithDelayedExecution
	seen  *measuredQueue // nil: nobody wants to know

	mu       sync.Mutex // guards what follows
	failures map[Key]int
	delayed  map[Key]*delay
	ended    bool
}

type delay struct{ timer clock.Timer }

func newQueue(c clock.WithDelayedExecution, seen *measuredQueue) *Queue {
	config := workqueue.TypedQueueConfig[Key]{}
	if seen != nil {
		config.Queue = seen
	}
	return &Queue{
		queue:    workqueue.NewTypedWithConfig(config),
		seen:     seen,
		clock:    c,
		failures: map[Key]int{},
		delayed:  map[Key]*delay{},
	}
}

// Add has key reconciled as soon as a worker is free.
func (q *Queue) Add(key Key) { q.queue.Add(key) }

// waitLocked has key reconciled after d. It replaces an earlier wait: the latest
// reconciliation knew best when the next is due.
func (q *Queue) waitLocked(key Key, d time.Duration) {
	if old := q.delayed[key]; old != nil {
		old.timer.Stop()
		delete(q.delayed, key)
	}
	if d <= 0 || q.ended {
		return
	}
	entry := &delay{}
	q.delayed[key] = entry
	entry.timer = q.clock.AfterFunc(d, func() {
		q.mu.Lock()
		if q.delayed[key] == entry {
			delete(q.delayed, key)
		}
		q.mu.Unlock()
		q.queue.Add(key)
	})
}

// retry has key reconciled again after a back-off that doubles with every failure.
func (q *Queue) retry(key Key) {
	q.seen.retried()
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.failures[key]
	q.failures[key] = n + 1
	d := lastRetry
	if n < 14 { // 5 ms << 14 is more than the longest wait
		d = min(firstRetry<<n, lastRetry)
	}
	q.waitLocked(key, d)
}

// settle ends key's back-off and has it reconciled after d, if that is positive.
func (q *Queue) settle(key Key, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
	q.waitLocked(key, d)
}

func (q *Queue) shutDown() {
	q.mu.Lock()
	q.ended = true
	for key, d := range q.delayed {
		d.timer.Stop()
		delete(q.delayed, key)
	}
	q.mu.Unlock()
	q.queue.ShutDown()
}
