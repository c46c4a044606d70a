package audit

import (
	"encoding/json"
	"log/slog"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A limit bounds events. The zero value does not.
type limit struct {
	on   bool
	each int64 // bytes of an event
	log  *slog.Logger
}

// shorten returns an event in the form in which it fits: one that is too large loses its
// objects; nil says that it still is and gets lost.
func (l *limit) shorten(e *auditv1.Event) (*auditv1.Event, error) {
	if !l.on {
		return e, nil
	}
	text, err := json.Marshal(e)
	if err != nil || int64(len(text)) <= l.each {
		return e, err
	}
	short := e.DeepCopy()
	short.RequestObject, short.ResponseObject = nil, nil
	if short.Annotations == nil {
		short.Annotations = map[string]string{}
	}
	short.Annotations["audit.k8s.io/truncated"] = "true"
	if text, err = json.Marshal(short); err != nil || int64(len(text)) <= l.each {
		return short, err
	}
	l.log.Error("Audit event is too large and is lost.", "auditID", e.AuditID, "bytes", len(text))
	return nil, nil
}
