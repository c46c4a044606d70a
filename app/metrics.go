package app

import (
	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/scheduler"
)

// processMetrics are those of a process that are not the API server's: all of its
// components are in one place, as they are in one process.
type processMetrics struct {
	*metric.Set
	queues    *controllers.Metrics
	scheduler *scheduler.Metrics
}

func newProcessMetrics() *processMetrics {
	s := metric.NewSet()
	client.Measure(s)
	return &processMetrics{s, controllers.NewMetrics(s), scheduler.NewMetrics(s)}
}
