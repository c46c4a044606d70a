package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/spans"
)

// measure counts an answer of the hook, and takes its time off that of the request.
func (h *Hook) measure(ctx context.Context, a *admission.Attributes, mutating bool, err error, start time.Time) {
	s := request.From(ctx)
	if s == nil {
		return
	}
	took, m, operation := time.Since(start), s.Metrics, string(a.Operation)
	step := "validating"
	if mutating {
		step = measure.Admit
		s.Elsewhere.Waited(took)
	} else {
		s.Elsewhere.AtOnce(took)
	}
	var failed *CallError
	var refused *apierrors.StatusError
	switch {
	case err == nil:
		m.Asked(h.Name, step, operation, http.StatusOK, false, took)
	case errors.As(err, &failed):
		status := 0
		if errors.As(failed.Err, &refused) {
			status = int(refused.ErrStatus.Code)
		}
		m.Asked(h.Name, step, operation, status, !h.Ignore, took)
		if h.Ignore {
			m.Ignored(h.Name, step)
			return
		}
		m.Refused(h.Name, step, operation, "calling_webhook_error", status)
	case errors.As(err, &refused):
		m.Asked(h.Name, step, operation, http.StatusOK, true, took)
		m.Refused(h.Name, step, operation, "", int(refused.ErrStatus.Code))
	default:
		m.Asked(h.Name, step, operation, http.StatusOK, true, took)
		m.Refused(h.Name, step, operation, "apiserver_internal_error", 0)
	}
}

// span begins the span of a question to the hook.
func (h *Hook) span(ctx context.Context, a *admission.Attributes, mutating bool) (context.Context, func(error)) {
	if s := request.From(ctx); s == nil || !s.Traced {
		return ctx, func(error) {}
	}
	step := "Call validating webhook"
	if mutating {
		step = "Call mutating webhook"
	}
	return spans.Start(ctx, step, "configuration", h.Configuration, "webhook", h.Name, "resource", a.Resource.GroupResource().String(), "subresource", a.Subresource, "operation", string(a.Operation))
}
