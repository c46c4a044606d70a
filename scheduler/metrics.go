package scheduler

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// Metrics are the scheduler's, under upstream's names. A nil one measures nothing.
type Metrics struct {
	tries       *metric.Counters
	took        *metric.Histograms
	algorithm   *metric.Histograms
	needed      *metric.Histograms
	waited      *metric.Histograms
	preemptions *metric.Counters

	queue atomic.Pointer[Queue] // of the scheduler that runs
}

// NewMetrics defines them in a set.
func NewMetrics(s *metric.Set) *Metrics {
	seconds := prometheus.ExponentialBuckets(0.001, 2, 15)
	of := []string{"result", "profile"}
	m := &Metrics{
		tries:       s.Counter(metric.Stable, "scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.", of...),
		took:        s.Histogram(metric.Stable, "scheduler_scheduling_attempt_duration_seconds", "Scheduling attempt latency in seconds (scheduling algorithm + binding)", seconds, of...),
		algorithm:   s.Histogram(metric.Alpha, "scheduler_scheduling_algorithm_duration_seconds", "Scheduling algorithm latency in seconds", seconds),
		needed:      s.Histogram(metric.Stable, "scheduler_pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", prometheus.ExponentialBuckets(1, 2, 5)),
		waited:      s.Histogram(metric.Beta, "scheduler_pod_scheduling_sli_duration_seconds", "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts.", prometheus.ExponentialBuckets(0.01, 2, 20), "attempts"),
		preemptions: s.Counter(metric.Stable, "scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now"),
	}
	pending := s.Desc(metric.Stable, "gauge", "scheduler_pending_pods", "Number of pending pods, by the queue type.", "queue")
	s.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{pending}, Read: func(out chan<- prometheus.Metric) {
		q := m.queue.Load()
		if q == nil {
			return
		}
		active, backoff, waiting := q.Counts()
		for name, n := range map[string]int{"active": active, "backoff": backoff, "unschedulable": waiting} {
			metric.Show(out, pending, float64(n), name)
		}
	}})
	return m
}

// follow lets the metrics read a queue.
func (m *Metrics) follow(q *Queue) {
	if m != nil {
		m.queue.Store(q)
	}
}

// decided notes how long it took to find a node.
func (m *Metrics) decided(took time.Duration) {
	if m != nil {
		m.algorithm.Of(metric.Labels{}).Observe(took.Seconds())
	}
}

// preempts notes that a pod without a node looks for others to push out.
func (m *Metrics) preempts() {
	if m != nil {
		m.preemptions.Of(metric.Labels{}).Inc()
	}
}

// tried notes an attempt that has ended without a node: "unschedulable" or "error".
func (m *Metrics) tried(result, profile string, qp *QueuedPod) {
	if m == nil {
		return
	}
	l := metric.Labels{result, profile}
	m.tries.Of(l).Inc()
	m.took.Of(l).Observe(time.Since(qp.began).Seconds())
}

// bound notes a pod that has its node.
func (m *Metrics) bound(profile string, qp *QueuedPod) {
	if m == nil {
		return
	}
	m.tried("scheduled", profile, qp)
	n := max(1, qp.Attempts)
	m.needed.Of(metric.Labels{}).Observe(float64(n))
	label := strconv.Itoa(n)
	if n >= 15 {
		label = "15+"
	}
	m.waited.Of(metric.Labels{label}).Observe(time.Since(qp.Created).Seconds())
}
