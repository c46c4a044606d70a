package measure

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// others are the metrics that belong to no larger kind.
type others struct {
	handshakes     *metric.Counters
	conversions    *metric.Counters
	conversionTook *metric.Histograms
	crdConversions *metric.Histograms
	unavailable    *metric.Counters
}

func newOthers(s *metric.Set) others {
	return others{
		handshakes:  s.Counter(metric.Alpha, "apiserver_tls_handshake_errors_total", "Number of requests dropped with 'TLS handshake error from' error"),
		conversions: s.Counter(metric.Alpha, "apiserver_conversion_webhook_request_total", "Counter for conversion webhook requests with success/failure and failure error type", "result", "failure_type"),
		conversionTook: s.Histogram(metric.Alpha, "apiserver_conversion_webhook_duration_seconds", "Conversion webhook request latency",
			[]float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60}, "result", "failure_type"),
		crdConversions: s.Histogram(metric.Alpha, "apiserver_crd_conversion_webhook_duration_seconds", "CRD webhook conversion duration in seconds",
			prometheus.ExponentialBuckets(0.001, 2, 15), "crd_name", "from_version", "to_version", "succeeded"),
		unavailable: s.Counter(metric.Alpha, "aggregator_unavailable_apiservice_total", "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.", "name", "reason"),
	}
}

// Handshake counts a TLS handshake that failed.
func (m *Metrics) Handshake() {
	if m != nil {
		m.handshakes.Of(metric.Labels{}).Inc()
	}
}

// Converted counts a call of a conversion webhook. failure is "" or what upstream calls
// it: conversion_webhook_call_failure, conversion_webhook_malformed_response_failure,
// conversion_webhook_partial_response_failure, conversion_webhook_invalid_converted_object_failure,
// conversion_webhook_no_objects_returned_failure.
func (m *Metrics) Converted(crd, from, to, failure string, took time.Duration) {
	if m == nil {
		return
	}
	l := metric.Labels{"success", ""}
	if failure != "" {
		l = metric.Labels{"failure", failure}
	}
	m.conversions.Of(l).Inc()
	m.conversionTook.Of(l).Observe(took.Seconds())
	m.crdConversions.Of(metric.Labels{crd, from, to, text(failure == "")}).Observe(took.Seconds())
}

// Unavailable counts an extension API server that can no longer be reached.
func (m *Metrics) Unavailable(name, reason string) {
	if m != nil {
		m.unavailable.Of(metric.Labels{name, reason}).Inc()
	}
}
