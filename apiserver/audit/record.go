package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// A Record is what is known of one audited request.
type Record struct {
	auditor  *Auditor
	decision decision
	long     bool

	mu      sync.Mutex // guards event and started
	event   auditv1.Event
	started bool // the answer has begun
}

var _ request.Auditor = (*Record)(nil)

// Annotate implements request.Auditor. The first value of a key stays.
func (r *Record) Annotate(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.event.Annotations[key]; there {
		return
	}
	if r.event.Annotations == nil {
		r.event.Annotations = map[string]string{}
	}
	r.event.Annotations[key] = value
}

// Impersonated notes as whom the request acts, and by which verb of constrained
// impersonation; "" is the old one.
func (r *Record) Impersonated(u user.Info, constraint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	as := info(u)
	r.event.ImpersonatedUser = &as
	if constraint != "" {
		r.event.AuthenticationMetadata = &auditv1.AuthenticationMetadata{ImpersonationConstraint: constraint}
	}
}

// Wants implements request.Auditor.
func (r *Record) Wants() (requests, responses bool) {
	return r.decision.level.GreaterOrEqual(auditinternal.LevelRequest), r.decision.level.GreaterOrEqual(auditinternal.LevelRequestResponse)
}

// Request implements request.Auditor.
func (r *Record) Request(object []byte) {
	raw := r.stripped(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.RequestObject = raw
}

// Response implements request.Auditor.
func (r *Record) Response(object []byte) {
	raw := r.stripped(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.ResponseObject = raw
}

// Failure implements request.Auditor.
func (r *Record) Failure(s *metav1.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event.ResponseStatus = &metav1.Status{Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code}
}

// About implements request.Auditor.
func (r *Record) About(o metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ref := r.event.ObjectRef
	if ref == nil {
		return
	}
	for _, f := range []struct {
		into *string
		from string
	}{{&ref.Name, o.GetName()}, {&ref.Namespace, o.GetNamespace()}, {(*string)(&ref.UID), string(o.GetUID())}, {&ref.ResourceVersion, o.GetResourceVersion()}} {
		if *f.into == "" {
			*f.into = f.from
		}
	}
}

// stripped returns an object as it is logged.
func (r *Record) stripped(object []byte) *runtime.Unknown {
	if r.decision.noOwner {
		object = withoutOwners(object)
	}
	return &runtime.Unknown{Raw: object, ContentType: runtime.ContentTypeJSON}
}

// withoutOwners drops the managed fields of an object or of a list's items.
func withoutOwners(object []byte) []byte {
	var tree map[string]any
	if json.Unmarshal(object, &tree) != nil {
		return object
	}
	drop := func(o map[string]any) {
		if meta, ok := o["metadata"].(map[string]any); ok {
			delete(meta, "managedFields")
		}
	}
	drop(tree)
	for _, list := range []string{"items", "rows"} {
		items, _ := tree[list].([]any)
		for _, item := range items {
			o, _ := item.(map[string]any)
			if row, ok := o["object"].(map[string]any); ok {
				o = row
			}
			drop(o)
		}
	}
	out, err := json.Marshal(tree)
	if err != nil {
		return object
	}
	return out
}

// begun notes that the answer begins.
func (r *Record) begun(code int) {
	r.mu.Lock()
	if r.started {
		r.mu.Unlock()
		return
	}
	r.started = true
	if r.event.ResponseStatus == nil {
		r.event.ResponseStatus = &metav1.Status{}
	}
	r.event.ResponseStatus.Code = int32(code)
	r.mu.Unlock()
	if r.long {
		_ = r.emit(auditv1.StageResponseStarted) // it has been logged
	}
}

// End ends the record; it is deferred, and passes a panic on.
func (r *Record) End() {
	p := recover()
	switch p {
	case nil:
		r.begun(http.StatusOK) // a handler that wrote nothing
		_ = r.emit(auditv1.StageResponseComplete)
	default:
		r.mu.Lock()
		r.event.ResponseStatus = &metav1.Status{
			Code: http.StatusInternalServerError, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("APIServer panic'd: %v", p),
		}
		r.mu.Unlock()
		_ = r.emit(auditv1.StagePanic)
		panic(p)
	}
}

// emit hands on the event as it is at a stage.
func (r *Record) emit(stage auditv1.Stage) error {
	if !r.decision.wants(stage) {
		return nil
	}
	r.mu.Lock()
	e := r.event
	e.Stage, e.StageTimestamp = stage, metav1.NewMicroTime(time.Now())
	e.Annotations = maps.Clone(e.Annotations)
	if e.ObjectRef != nil {
		ref := *e.ObjectRef
		e.ObjectRef = &ref
	}
	if e.ResponseStatus != nil {
		e.ResponseStatus = e.ResponseStatus.DeepCopy()
	}
	r.mu.Unlock()
	return r.auditor.write(&e)
}
