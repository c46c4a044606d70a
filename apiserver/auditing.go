package apiserver

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/apiserver/audit"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/base/metric"
)

// runAudit serves the audit backends until the last request has been answered: the
// pipeline writes to them while the server shuts down.
func (s *Server) runAudit(ctx context.Context) error {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		<-s.answered
		cancel()
	}()
	return s.audit.Run(lasting)
}

// noteDecision adds to a request's audit event what it was allowed by.
func noteDecision(s *request.State, allowed bool, reason string) {
	if s.Audit == nil {
		return
	}
	decision := "forbid"
	if allowed {
		decision = "allow"
	}
	s.Audit.Annotate("authorization.k8s.io/decision", decision)
	s.Audit.Annotate("authorization.k8s.io/reason", reason)
}

// auditReadings define what is counted of the audit log.
func (s *Server) auditReadings() {
	event := s.measure.Desc(metric.Alpha, "counter", "apiserver_audit_event_total", "Counter of audit events generated and sent to the audit backend.")
	failed := s.measure.Desc(metric.Alpha, "counter", "apiserver_audit_error_total", "Counter of audit events that failed to be audited properly. Plugin identifies the plugin affected by the error.", "plugin")
	level := s.measure.Desc(metric.Alpha, "counter", "apiserver_audit_level_total", "Counter of policy levels for audit events (1 per request).", "level")
	rejected := s.measure.Desc(metric.Alpha, "counter", "apiserver_audit_requests_rejected_total", "Counter of apiserver requests rejected due to an error in audit logging backend.")
	s.measure.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{event, failed, level, rejected}, Read: func(out chan<- prometheus.Metric) {
		var none audit.Counts
		c := &none
		if s.audit != nil {
			c = &s.audit.Counts
		}
		metric.Count(out, event, float64(c.Events.Load()))
		metric.Count(out, rejected, float64(c.Rejected.Load()))
		for name, n := range map[string]int64{"log": c.Errors.Log.Load(), "webhook": c.Errors.Webhook.Load(), "buffered": c.Errors.Buffered.Load()} {
			if n > 0 {
				metric.Count(out, failed, float64(n), name)
			}
		}
		for name, n := range map[string]int64{"None": c.None.Load(), "Metadata": c.Metadata.Load(), "Request": c.Request.Load(), "RequestResponse": c.WithResponses.Load()} {
			if n > 0 {
				metric.Count(out, level, float64(n), name)
			}
		}
	}})
}
