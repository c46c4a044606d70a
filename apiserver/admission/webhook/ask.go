package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// A CallError says that a hook could not be asked. It is not returned for hooks
// that are to be ignored then.
type CallError struct {
	Name string
	Err  error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.Name, e.Err)
}

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

// Wanted returns the version in which the hook is to be asked about a, or nil:
// the criteria and the conditions, which look at values.
func (h *Hook) Wanted(ctx context.Context, a *admission.Attributes, objects registry.Reader, values func(*admission.Match) (object, old runtime.Object, err error)) (*admission.Match, error) {
	m, err := h.about.Match(a, objects)
	if m == nil || err != nil || h.conditions == nil {
		return m, err
	}
	object, old, err := values(m)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	switch holds, err := h.conditions().holds(ctx, a, m, object, old); {
	case err != nil:
		return nil, apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	case !holds:
		return nil, nil
	}
	return m, nil
}

// Ask asks a hook. The result is the JSON patch that it wants, the refusal as an
// API error, or a *CallError.
func (h *Hook) Ask(ctx context.Context, a *admission.Attributes, m *admission.Match, mutating bool) (patch []byte, err error) {
	start := time.Now()
	ctx, end := h.span(ctx, a, mutating)
	patch, err = h.ask(ctx, a, m, mutating)
	end(err)
	h.measure(ctx, a, mutating, err, start)
	if a.Record != nil {
		kind, answer := "validating", h.outcome(patch, err)
		if mutating {
			kind = "mutating"
		}
		a.Record("webhook "+h.Name, start, "type", kind, "answer", answer, "configuration", h.Configuration)
	}
	return patch, err
}

// outcome is what a hook's answer was, in a word.
func (h *Hook) outcome(patch []byte, err error) string {
	var failed *CallError
	switch {
	case errors.As(err, &failed) && h.Ignore:
		return "failed, ignored"
	case failed != nil:
		return "failed"
	case err != nil:
		return "refused"
	case len(patch) > 0:
		return "patched"
	}
	return "allowed"
}

func (h *Hook) ask(ctx context.Context, a *admission.Attributes, m *admission.Match, mutating bool) (patch []byte, err error) {
	if a.DryRun && h.NoDryRun {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.Name))
	}
	asked, err := review(h, a, m)
	if err != nil {
		return nil, &CallError{h.Name, fmt.Errorf("could not create admission objects: %w", err)}
	}
	c, err := h.connect()
	if err != nil {
		return nil, &CallError{h.Name, fmt.Errorf("could not get REST client: %w", err)}
	}
	limited, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	got := &admissionv1.AdmissionReview{}
	if err := c.Post(limited, asked, got); err != nil {
		return nil, &CallError{h.Name, fmt.Errorf("failed to call webhook: %w", err)}
	}
	said, err := verify(asked, got, mutating)
	if err != nil {
		return nil, &CallError{h.Name, fmt.Errorf("received invalid webhook response: %w", err)}
	}
	for _, text := range said.Warnings {
		request.Warn(ctx, text)
	}
	for key, value := range said.AuditAnnotations {
		request.Annotate(ctx, h.Name+"/"+key, value)
	}
	if !said.Allowed {
		return nil, refusal(h.Name, said.Result)
	}
	return said.Patch, nil
}

// Failed decides about an error of Ask: nil for one that is to be ignored.
func (h *Hook) Failed(ctx context.Context, err error, log func(err error)) error {
	var failed *CallError
	if !errors.As(err, &failed) {
		return err
	}
	if !h.Ignore {
		return apierrors.NewInternalError(failed)
	}
	log(failed)
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	return nil
}

// refusal is the error that a client gets for a hook's no.
func refusal(name string, s *metav1.Status) error {
	if s == nil {
		s = &metav1.Status{}
	}
	if s.Code < http.StatusBadRequest {
		s.Code = http.StatusBadRequest
	}
	if s.Status == "" || s.Status == metav1.StatusSuccess {
		s.Status = metav1.StatusFailure
	}
	by := fmt.Sprintf("admission webhook %q denied the request", name)
	switch {
	case s.Message != "":
		s.Message = by + ": " + s.Message
	case s.Reason != "":
		s.Message = by + ": " + string(s.Reason)
	default:
		s.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: *s}
}
