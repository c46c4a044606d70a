package flow

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// A tally is what is counted of the requests of one schema in one level. What is not a
// histogram is guarded by the dispatcher's mutex.
type tally struct {
	schema                            string
	waiting, waitingSeats             int
	running, seats                    int
	dispatched, full, late, cancelled int64
	unseated                          int64 // found fewer free seats than they need

	*histograms
}

// histograms are those of one schema in one level.
type histograms struct {
	waited, refused     prometheus.Observer // in seconds, of those that waited
	served, watched     prometheus.Observer
	queue, width, heard prometheus.Observer
}

// newHistograms defines them.
func newHistograms(s *metric.Set) *metric.Family[*histograms] {
	seconds := []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	of := []string{"priority_level", "flow_schema"}
	with := func(name string) []string { return append(of[:2:2], name) }
	waited := s.HistogramVec(metric.Beta, "apiserver_flowcontrol_request_wait_duration_seconds", "Length of time a request spent waiting in its queue", seconds, with("execute")...)
	served := s.HistogramVec(metric.Alpha, "apiserver_flowcontrol_request_execution_seconds", "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem", seconds, with("type")...)
	queue := s.HistogramVec(metric.Alpha, "apiserver_flowcontrol_request_queue_length_after_enqueue", "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued", []float64{0, 10, 25, 50, 100, 250, 500, 1000}, of...)
	width := s.HistogramVec(metric.Alpha, "apiserver_flowcontrol_work_estimated_seats", "Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness", []float64{1, 2, 4, 8, 16, 32, 64, 100}, of...)
	heard := s.HistogramVec(metric.Alpha, "apiserver_flowcontrol_watch_count_samples", "count of watchers for mutating requests in API Priority and Fairness", []float64{0, 1, 10, 100, 1000, 10000}, of...)
	return metric.NewFamily(func(l metric.Labels) *histograms {
		return &histograms{
			waited: lazily(func() prometheus.Observer { return waited.WithLabelValues(l[0], l[1], "true") }), refused: lazily(func() prometheus.Observer { return waited.WithLabelValues(l[0], l[1], "false") }),
			served: lazily(func() prometheus.Observer { return served.WithLabelValues(l[0], l[1], "regular") }), watched: lazily(func() prometheus.Observer { return served.WithLabelValues(l[0], l[1], "watch") }),
			queue: lazily(func() prometheus.Observer { return queue.WithLabelValues(l[0], l[1]) }), width: lazily(func() prometheus.Observer { return width.WithLabelValues(l[0], l[1]) }),
			heard: lazily(func() prometheus.Observer { return heard.WithLabelValues(l[0], l[1]) }),
		}
	})
}

// began notes what a request costs.
func (h *histograms) began(c *cost) {
	h.width.Observe(float64(c.width()))
	if c.watchers >= 0 {
		h.heard.Observe(float64(c.watchers))
	}
}

// ended notes for how long it was served.
func (h *histograms) ended(watch bool, took time.Duration) {
	if watch {
		h.watched.Observe(took.Seconds())
		return
	}
	h.served.Observe(took.Seconds())
}
