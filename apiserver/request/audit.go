package request

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Auditor hears what becomes of a request that is audited.
type Auditor interface {
	// Annotate adds to the event; the first value of a key stays.
	Annotate(key, value string)
	// Wants reports whether the objects of the request and of the answer are logged.
	Wants() (requests, responses bool)
	// About completes what the request is about by the object that it brings; at every level.
	About(o metav1.Object)
	// Request and Response are told the objects as JSON, which is not modified.
	Request(object []byte)
	Response(object []byte)
	// Failure is told the status of an answer that is an error.
	Failure(s *metav1.Status)
}

// Annotate adds an annotation to the audit event of the request that ctx belongs to.
func Annotate(ctx context.Context, key, value string) {
	if s := From(ctx); s != nil && s.Audit != nil {
		s.Audit.Annotate(key, value)
	}
}

// Audited returns the auditor of a request whose objects are to be logged, or nil.
func Audited(ctx context.Context) (a Auditor, requests, responses bool) {
	s := From(ctx)
	if s == nil || s.Audit == nil {
		return nil, false, false
	}
	requests, responses = s.Audit.Wants()
	return s.Audit, requests, responses
}
