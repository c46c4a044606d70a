package measure

import (
	"github.com/periplus/periplus/base/metric"
)

// SLIs are what /metrics/slis shows: how the checks of health have gone.
type SLIs struct {
	*metric.Set
	state *metric.Gauges
	total *metric.Counters
}

// NewSLIs defines them.
func NewSLIs() *SLIs {
	s := metric.NewSet()
	return &SLIs{
		Set:   s,
		state: s.Gauge(metric.Stable, "kubernetes_healthcheck", "This metric records the result of a single healthcheck.", "name", "type"),
		total: s.Counter(metric.Stable, "kubernetes_healthchecks_total", "This metric records the results of all healthcheck.", "name", "type", "status"),
	}
}

// Checked notes the result of a check of an endpoint (healthz, livez or readyz).
func (s *SLIs) Checked(name, endpoint string, err error) {
	status, value := "success", 1.0
	if err != nil {
		status, value = "error", 0
	}
	s.state.Of(metric.Labels{name, endpoint}).Set(value)
	s.total.Of(metric.Labels{name, endpoint, status}).Inc()
}
