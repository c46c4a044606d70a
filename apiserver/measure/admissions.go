package measure

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// admissions are the metrics of admission.
type admissions struct {
	steps, plugins         *metric.Histograms
	hooks                  *metric.Histograms
	hookCalls, hookRefusal *metric.Counters
	hookIgnored            *metric.Counters
	checks, mutations      *metric.Counters
	checkTook, mutateTook  *metric.Histograms

	chain *[64][8]atomic.Pointer[plugin] // what was looked up already, by place in the chain
}

func newAdmissions(s *metric.Set) admissions {
	short := []float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5}
	expressions := []float64{0.0000005, 0.001, 0.01, 0.1, 1.0}
	return admissions{
		chain: &[64][8]atomic.Pointer[plugin]{},
		steps: s.Histogram(metric.Stable, "apiserver_admission_step_admission_duration_seconds", "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).", short, "type", "operation", "rejected"),
		plugins: s.Histogram(metric.Stable, "apiserver_admission_controller_admission_duration_seconds", "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
			short, "name", "type", "operation", "rejected"),
		hooks: s.Histogram(metric.Stable, "apiserver_admission_webhook_admission_duration_seconds", "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
			[]float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25}, "name", "type", "operation", "rejected"),
		hookCalls: s.Counter(metric.Alpha, "apiserver_admission_webhook_request_total", "Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
			"name", "type", "operation", "code", "rejected"),
		hookRefusal: s.Counter(metric.Alpha, "apiserver_admission_webhook_rejection_count", "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
			"name", "type", "operation", "error_type", "rejection_code"),
		hookIgnored: s.Counter(metric.Alpha, "apiserver_admission_webhook_fail_open_count", "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).", "name", "type"),
		checks: s.Counter(metric.Beta, "apiserver_validating_admission_policy_check_total", "Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.",
			"policy", "policy_binding", "error_type", "enforcement_action"),
		checkTook: s.Histogram(metric.Beta, "apiserver_validating_admission_policy_check_duration_seconds", "Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
			expressions, "policy", "policy_binding", "error_type", "enforcement_action"),
		mutations: s.Counter(metric.Alpha, "apiserver_mutating_admission_policy_check_total", "Mutation admission policy check total, labeled by policy and further identified by binding.", "policy", "policy_binding", "error_type"),
		mutateTook: s.Histogram(metric.Alpha, "apiserver_mutating_admission_policy_check_duration_seconds", "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
			expressions, "policy", "policy_binding", "error_type"),
	}
}

// The steps of admission.
const (
	Admit    = "admit"
	Validate = "validate"
)

// Step counts all plug-ins of a step together.
func (m *Metrics) Step(step, operation string, rejected bool, took time.Duration) {
	if m != nil {
		m.steps.Of(metric.Labels{step, operation, text(rejected)}).Observe(took.Seconds())
	}
}

// Plugin counts the answer of the plug-in at a place of the chain.
func (m *Metrics) Plugin(place int, name, step, operation string, rejected bool, took time.Duration) {
	if m == nil {
		return
	}
	if rejected || place >= len(m.chain) {
		m.plugins.Of(metric.Labels{name, step, operation, text(rejected)}).Observe(took.Seconds())
		return
	}
	at := &m.chain[place][numberOf(step, operation)]
	known := at.Load()
	if known == nil || known.name != name {
		known = &plugin{name, m.plugins.Of(metric.Labels{name, step, operation, text(false)})}
		at.Store(known)
	}
	known.Observe(took.Seconds())
}

// A plugin is the series of one plug-in, one step and one operation.
type plugin struct {
	name string
	prometheus.Observer
}

// numberOf numbers steps and operations.
func numberOf(step, operation string) int {
	n := 0
	switch operation {
	case "CREATE":
		n = 1
	case "UPDATE":
		n = 2
	case "DELETE":
		n = 3
	}
	if step == Validate {
		return n + 4
	}
	return n
}

// Asked counts a webhook's answer: its HTTP status, and whether the request goes on.
func (m *Metrics) Asked(name, step, operation string, status int, rejected bool, took time.Duration) {
	if m == nil {
		return
	}
	m.hookCalls.Of(metric.Labels{name, step, operation, strconv.Itoa(min(status, 600)), text(rejected)}).Inc()
	m.hooks.Of(metric.Labels{name, step, operation, text(rejected)}).Observe(took.Seconds())
}

// Refused counts a request that a webhook has ended: by its answer (of is ""), or because
// it could not be asked ("calling_webhook_error") or understood ("apiserver_internal_error").
func (m *Metrics) Refused(name, step, operation, of string, status int) {
	if m == nil {
		return
	}
	if of == "" {
		of = "no_error"
	}
	m.hookRefusal.Of(metric.Labels{name, step, operation, of, strconv.Itoa(min(status, 600))}).Inc()
}

// Ignored counts a webhook that could not be asked and was left out.
func (m *Metrics) Ignored(name, step string) {
	if m != nil {
		m.hookIgnored.Of(metric.Labels{name, step}).Inc()
	}
}

// Checked counts a validation of a policy: kind of error ("no_error", "compile_error",
// "invalid_error", "out_of_budget") and action ("allow", "deny", "audit", "warn").
func (m *Metrics) Checked(policy, binding, kind, action string, took time.Duration) {
	if m == nil {
		return
	}
	l := metric.Labels{policy, binding, kind, action}
	m.checks.Of(l).Inc()
	m.checkTook.Of(l).Observe(took.Seconds())
}

// Mutated counts a mutation of a policy.
func (m *Metrics) Mutated(policy, binding, kind string, took time.Duration) {
	if m == nil {
		return
	}
	l := metric.Labels{policy, binding, kind}
	m.mutations.Of(l).Inc()
	m.mutateTook.Of(l).Observe(took.Seconds())
}
