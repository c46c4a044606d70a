package apiserver

import (
	"context"

	"github.com/periplus/periplus/apiserver/request"
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
