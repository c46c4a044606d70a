package app

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/controllers"
)

// processMetrics are those of a process that are not the API server's: all of its
// components are in one place, as they are in one process.
type processMetrics struct {
	*metric.Set
	queues *controllers.Metrics
}

func newProcessMetrics() *processMetrics {
	s := metric.NewSet()
	client.Measure(s)
	return &processMetrics{s, controllers.NewMetrics(s)}
}

// handler serves them alone, with those of the libraries.
func (m *processMetrics) handler() http.Handler {
	return measure.Handler(m, legacyregistry.DefaultGatherer, prometheus.DefaultGatherer)
}
