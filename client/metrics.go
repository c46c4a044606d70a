package client

import (
	"context"
	"net/url"
	"time"

	"k8s.io/client-go/tools/metrics"

	"github.com/periplus/periplus/base/metric"
)

// Measure counts the requests of all of client-go's clients in this process in a set, under
// upstream's names (rest_client_…). The first call in a process holds: the hooks are
// client-go's.
func Measure(s *metric.Set) {
	seconds := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0}
	bytes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	m := &measured{
		took:     s.Histogram(metric.Alpha, "rest_client_request_duration_seconds", "Request latency in seconds. Broken down by verb, and host.", seconds, "verb", "host"),
		limited:  s.Histogram(metric.Alpha, "rest_client_rate_limiter_duration_seconds", "Client side rate limiter latency in seconds. Broken down by verb, and host.", seconds, "verb", "host"),
		sent:     s.Histogram(metric.Alpha, "rest_client_request_size_bytes", "Request size in bytes. Broken down by verb and host.", bytes, "verb", "host"),
		received: s.Histogram(metric.Alpha, "rest_client_response_size_bytes", "Response size in bytes. Broken down by verb and host.", bytes, "verb", "host"),
		results:  s.Counter(metric.Alpha, "rest_client_requests_total", "Number of HTTP requests, partitioned by status code, method, and host.", "code", "method", "host"),
		retries:  s.Counter(metric.Alpha, "rest_client_request_retries_total", "Number of request retries, partitioned by status code, verb, and host.", "code", "verb", "host"),
	}
	metrics.Register(metrics.RegisterOpts{
		RequestLatency: latency{m.took}, RateLimiterLatency: latency{m.limited}, RequestSize: size{m.sent}, ResponseSize: size{m.received},
		RequestResult: m, RequestRetry: m,
	})
}

// measured are the metrics of clients.
type measured struct {
	took, limited, sent, received *metric.Histograms
	results, retries              *metric.Counters
}

// Increment implements metrics.ResultMetric.
func (m *measured) Increment(_ context.Context, code, method, host string) {
	m.results.Of(metric.Labels{code, method, host}).Inc()
}

// IncrementRetry implements metrics.RetryMetric.
func (m *measured) IncrementRetry(_ context.Context, code, method, host string) {
	m.retries.Of(metric.Labels{code, method, host}).Inc()
}

type latency struct{ *metric.Histograms }

// Observe implements metrics.LatencyMetric.
func (l latency) Observe(_ context.Context, verb string, u url.URL, d time.Duration) {
	l.Of(metric.Labels{verb, u.Host}).Observe(d.Seconds())
}

type size struct{ *metric.Histograms }

// Observe implements metrics.SizeMetric.
func (s size) Observe(_ context.Context, verb, host string, n float64) {
	s.Of(metric.Labels{verb, host}).Observe(n)
}
