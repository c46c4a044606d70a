package measure

import (
	"crypto/sha256"
	"fmt"
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
	reloads        map[string]reloads // by what is configured
	unavailable    *metric.Counters
}

// reloads are of one configuration file.
type reloads struct {
	count *metric.Counters
	last  *metric.Gauges
}

func newOthers(s *metric.Set) others {
	of := []string{"status", "apiserver_id_hash"}
	files := map[string]reloads{}
	for name, level := range map[string]metric.Level{"authentication": metric.Beta, "authorization": metric.Beta, "encryption": metric.Alpha} {
		files[name] = reloads{
			s.Counter(level, "apiserver_"+name+"_config_controller_automatic_reloads_total", "Total number of automatic reloads of "+name+" configuration split by status and apiserver identity.", of...),
			s.Gauge(level, "apiserver_"+name+"_config_controller_automatic_reload_last_timestamp_seconds", "Timestamp of the last automatic reload of "+name+" configuration split by status and apiserver identity.", of...),
		}
	}
	return others{
		reloads:     files,
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

// Reloaded counts a configuration file that was read again: that of authentication,
// authorization or encryption. server names the API server.
func (m *Metrics) Reloaded(what, server string, err error) {
	if m == nil {
		return
	}
	l := metric.Labels{"success", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(server)))}
	if err != nil {
		l[0] = "failure"
	}
	m.reloads[what].count.Of(l).Inc()
	m.reloads[what].last.Of(l).SetToCurrentTime()
}
