package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/request"
)

// writeBytes answers with an encoded object.
func writeBytes(w http.ResponseWriter, r *http.Request, f format, code int, body []byte) {
	addWarnings(w, r)
	if f.media == mediaJSON && forEyes(r) {
		var b bytes.Buffer
		if json.Indent(&b, body, "", "  ") == nil {
			body = b.Bytes()
		}
	}
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Cache-Control", "no-cache, private")
	if compresses(r, len(body)) {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		w.WriteHeader(code)
		if r.Method != http.MethodHead {
			_ = writeCompressed(w, body) // an error means that the client has gone
		}
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		// An error here means that the client has gone.
		_, _ = w.Write(body)
	}
}

// forEyes reports whether a person reads the answer, so that JSON is indented:
// the parameter pretty says so, else the client is one that people use by hand.
func forEyes(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty=") {
		if v := r.URL.Query().Get("pretty"); v != "" {
			b, err := strconv.ParseBool(v)
			return b || err != nil
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// addWarnings sets the Warning headers (RFC 7234 §5.5, code 299).
func addWarnings(w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	if s == nil {
		return
	}
	for _, text := range s.Warnings() {
		w.Header().Add("Warning", "299 - "+quote(text))
	}
}

// quote makes an HTTP quoted-string without control characters.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// WriteObject answers with obj in the format that the client accepts.
func (c *Codecs) WriteObject(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) {
	f, ok := negotiate(r.Header.Get("Accept"), offers{})
	if !ok {
		f = format{media: mediaJSON}
	}
	body, err := c.encode(f, obj)
	if err != nil {
		c.WriteError(w, r, err)
		return
	}
	c.auditResponse(r, obj)
	writeBytes(w, r, f, code, body)
}

// WriteError answers with err as a Status object.
func (c *Codecs) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	c.auditFailure(r, status)
	f, ok := negotiate(r.Header.Get("Accept"), offers{})
	if !ok {
		f = format{media: mediaJSON}
	}
	body, encodeErr := c.encode(f, status)
	if encodeErr != nil {
		http.Error(w, status.Message, int(status.Code))
		return
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	writeBytes(w, r, f, int(status.Code), body)
}

// statusOf returns err as a Status; errors of no API kind are 500.
func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		s := api.Status()
		s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if s.Status == "" {
			s.Status = metav1.StatusFailure
		}
		if s.Code == 0 {
			s.Code = http.StatusInternalServerError
		}
		return &s
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return statusOf(storeError(err))
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: "Internal error occurred: " + err.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: err.Error()}}},
	}
}

// notAcceptable is the answer to an Accept header that nothing satisfies.
func notAcceptable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + strings.Join([]string{mediaJSON, mediaYAML, mediaProtobuf, mediaCBOR}, ", "),
	}}
}

func unsupportedMediaType(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

func resourceExpired(what string) error {
	return apierrors.NewResourceExpired(what)
}

func noResource(gr schema.GroupResource) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{Group: gr.Group, Kind: gr.Resource},
	}}
}

func tooLargeRevision(wanted, current int64) error {
	e := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return e
}
