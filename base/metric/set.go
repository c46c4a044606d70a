package metric

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// A Level is what upstream promises about a metric.
type Level string

// The levels.
const (
	Alpha  Level = "ALPHA"
	Beta   Level = "BETA"
	Stable Level = "STABLE"
)

// A Definition is one metric that may be shown.
type Definition struct {
	Name    string
	Type    string // counter, gauge or histogram
	Level   Level
	Help    string
	Labels  []string
	Buckets []float64 // of histograms
}

// A Set defines metrics and gathers them.
type Set struct {
	*prometheus.Registry
	defined []Definition
}

// NewSet returns a set without metrics.
func NewSet() *Set { return &Set{Registry: prometheus.NewRegistry()} }

// The families of single metrics.
type (
	Counters   = Family[prometheus.Counter]
	Gauges     = Family[prometheus.Gauge]
	Histograms = Family[prometheus.Observer]
)

// Definitions are what has been defined so far, by name.
func (s *Set) Definitions() []Definition {
	out := slices.Clone(s.defined)
	slices.SortFunc(out, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (s *Set) define(d Definition) string {
	s.defined = append(s.defined, d)
	return fmt.Sprintf("[%s] %s", d.Level, d.Help)
}

// CounterVec defines a counter whose series are made by hand, for families of several metrics.
func (s *Set) CounterVec(level Level, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: s.define(Definition{name, "counter", level, help, labels, nil})}, labels)
	s.MustRegister(v)
	return v
}

// GaugeVec defines a gauge whose series are made by hand.
func (s *Set) GaugeVec(level Level, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: s.define(Definition{name, "gauge", level, help, labels, nil})}, labels)
	s.MustRegister(v)
	return v
}

// HistogramVec defines a histogram whose series are made by hand.
func (s *Set) HistogramVec(level Level, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: s.define(Definition{name, "histogram", level, help, labels, buckets}), Buckets: buckets}, labels)
	s.MustRegister(v)
	return v
}

// Counter defines a counter.
func (s *Set) Counter(level Level, name, help string, labels ...string) *Counters {
	v := s.CounterVec(level, name, help, labels...)
	return NewFamily(func(l Labels) prometheus.Counter { return v.WithLabelValues(l[:len(labels)]...) })
}

// Gauge defines a gauge.
func (s *Set) Gauge(level Level, name, help string, labels ...string) *Gauges {
	v := s.GaugeVec(level, name, help, labels...)
	return NewFamily(func(l Labels) prometheus.Gauge { return v.WithLabelValues(l[:len(labels)]...) })
}

// Histogram defines a histogram.
func (s *Set) Histogram(level Level, name, help string, buckets []float64, labels ...string) *Histograms {
	v := s.HistogramVec(level, name, help, buckets, labels...)
	return NewFamily(func(l Labels) prometheus.Observer { return v.WithLabelValues(l[:len(labels)]...) })
}

// Desc defines a metric that a collector makes when it is asked. kind is counter or gauge.
func (s *Set) Desc(level Level, kind, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, s.define(Definition{name, kind, level, help, labels, nil}), labels, nil)
}
