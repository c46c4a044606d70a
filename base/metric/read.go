package metric

import "github.com/prometheus/client_golang/prometheus"

// A Reading is a collector that reads figures which somebody keeps anyway.
type Reading struct {
	Descs []*prometheus.Desc
	Read  func(out chan<- prometheus.Metric)
}

var _ prometheus.Collector = (*Reading)(nil)

// Describe implements prometheus.Collector.
func (r *Reading) Describe(out chan<- *prometheus.Desc) {
	for _, d := range r.Descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r *Reading) Collect(out chan<- prometheus.Metric) { r.Read(out) }

// Count sends a counter.
func Count(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// Show sends a gauge.
func Show(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
