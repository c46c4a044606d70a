package controllers

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"

	"github.com/periplus/periplus/base/metric"
)

// Metrics are those of the controllers' work queues, under upstream's names (workqueue_…).
// Nothing runs for them: what grows while nobody looks is reckoned when somebody does.
type Metrics struct {
	adds, retries *metric.Counters
	waited        *metric.Histograms
	worked        *metric.Histograms

	mu     sync.Mutex // guards what follows
	queues map[string]*measuredQueue
}

// NewMetrics defines the metrics in a set.
func NewMetrics(s *metric.Set) *Metrics {
	seconds := prometheus.ExponentialBuckets(10e-9, 10, 10)
	m := &Metrics{
		adds:    s.Counter(metric.Beta, "workqueue_adds_total", "Total number of adds handled by workqueue", "name"),
		retries: s.Counter(metric.Beta, "workqueue_retries_total", "Total number of retries handled by workqueue", "name"),
		waited:  s.Histogram(metric.Beta, "workqueue_queue_duration_seconds", "How long in seconds an item stays in workqueue before being requested.", seconds, "name"),
		worked:  s.Histogram(metric.Beta, "workqueue_work_duration_seconds", "How long in seconds processing an item from workqueue takes.", seconds, "name"),
		queues:  map[string]*measuredQueue{},
	}
	depth := s.Desc(metric.Beta, "gauge", "workqueue_depth", "Current depth of workqueue", "name")
	unfinished := s.Desc(metric.Beta, "gauge", "workqueue_unfinished_work_seconds", "How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.", "name")
	longest := s.Desc(metric.Beta, "gauge", "workqueue_longest_running_processor_seconds", "How many seconds has the longest running processor for workqueue been running.", "name")
	s.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{depth, unfinished, longest}, Read: func(out chan<- prometheus.Metric) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for name, q := range m.queues {
			metric.Show(out, depth, float64(q.depth.Load()), name)
			sum, most := q.running()
			metric.Show(out, unfinished, sum.Seconds(), name)
			metric.Show(out, longest, most.Seconds(), name)
		}
	}})
	return m
}

// queue is where the queue of a controller is measured; it replaces an earlier one.
func (m *Metrics) queue(controller string) *measuredQueue {
	if m == nil {
		return nil
	}
	name := strings.ReplaceAll(strings.TrimSuffix(controller, "-controller"), "-", "_")
	l := metric.Labels{name}
	q := &measuredQueue{begun: map[Key]time.Time{}}
	q.adds, q.retries = m.adds.Of(l), m.retries.Of(l)
	q.waited, q.worked = m.waited.Of(l), m.worked.Of(l)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[name] = q
	return q
}

// A measuredQueue is the line in which keys wait, in the order in which they came, and
// what is known of those that are worked on.
type measuredQueue struct {
	adds, retries  prometheus.Counter
	waited, worked prometheus.Observer
	depth          atomic.Int64

	line []waiter // guarded by the work queue that calls

	mu    sync.Mutex // guards what follows
	begun map[Key]time.Time
}

type waiter struct {
	key   Key
	since time.Time
}

var _ workqueue.Queue[Key] = (*measuredQueue)(nil)

// Touch implements workqueue.Queue.
func (*measuredQueue) Touch(Key) {}

// Push implements workqueue.Queue.
func (q *measuredQueue) Push(key Key) {
	q.line = append(q.line, waiter{key, time.Now()})
	q.depth.Store(int64(len(q.line)))
	q.adds.Inc()
}

// Len implements workqueue.Queue.
func (q *measuredQueue) Len() int { return len(q.line) }

// Pop implements workqueue.Queue.
func (q *measuredQueue) Pop() Key {
	first := q.line[0]
	q.line[0] = waiter{}
	if q.line = q.line[1:]; len(q.line) == 0 {
		q.line = nil // the rest of a burst is garbage
	}
	q.depth.Store(int64(len(q.line)))
	now := time.Now()
	q.waited.Observe(now.Sub(first.since).Seconds())
	q.mu.Lock()
	q.begun[first.key] = now
	q.mu.Unlock()
	return first.key
}

// done notes that a key was worked on.
func (q *measuredQueue) done(key Key) {
	if q == nil {
		return
	}
	q.mu.Lock()
	begun := q.begun[key]
	delete(q.begun, key)
	q.mu.Unlock()
	q.worked.Observe(time.Since(begun).Seconds())
}

// retried notes that a key is tried once more.
func (q *measuredQueue) retried() {
	if q != nil {
		q.retries.Inc()
	}
}

// running is for how long the keys in work have been, all together and the longest.
func (q *measuredQueue) running() (sum, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, begun := range q.begun {
		d := time.Since(begun)
		sum, longest = sum+d, max(longest, d)
	}
	return sum, longest
}
