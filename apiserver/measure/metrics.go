package measure

import (
	"github.com/periplus/periplus/base/metric"
)

// Metrics are the metrics of one API server.
type Metrics struct {
	*metric.Set
	requests
	*senders
	admissions
	watches
	storage
	others
}

// New defines all metrics.
func New() *Metrics {
	s := metric.NewSet()
	return &Metrics{s, newRequests(s), newSenders(s), newAdmissions(s), newWatches(s), newStorage(s), newOthers(s)}
}

// slow are the buckets of durations of requests.
var slow = []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}

// text is a flag as the value of a label.
func text(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
