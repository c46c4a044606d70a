package journey

import (
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotation carries the trace context of the object's root, in W3C form
// "00-<32 hex trace id>-<16 hex span id>-01".
const Annotation = "periplus.io/traceparent"

// A TraceID identifies a journey: 32 lower-case hex digits.
type TraceID string

// A Span is one step of an object's journey. Start equals End for a moment.
type Span struct {
	Trace     TraceID           `json:"trace"`
	Component string            `json:"component"` // "apiserver", "scheduler", "kubelet" …
	Step      string            `json:"step"`      // what happened, in a few words: "bound to node n1"
	Kind      string            `json:"kind"`      // of the object: "Pod"
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	UID       types.UID         `json:"uid,omitempty"`
	Node      string            `json:"node,omitempty"`
	Start     time.Time         `json:"start"`
	End       time.Time         `json:"end"`
	Attrs     map[string]string `json:"attrs,omitempty"`
	// Skew is what was added to Start and End because the clock of Node was wrong.
	Skew time.Duration `json:"skew,omitempty"`
}

// Attributes that readers of journeys look for.
const (
	// AttrRequest is the X-Request-ID of a request: its hops have the same one.
	AttrRequest = "request"
	// AttrHop is the place of a step among those of a request: one of the Hop constants.
	AttrHop = "hop"
	// AttrStatus is the HTTP status that a hop answered with.
	AttrStatus = "status"
	// AttrApplication is how long the application itself took, as a Go duration.
	AttrApplication = "application"
	// AttrClaim names the claim, in the object's namespace, that a step is about.
	AttrClaim = "claim"
	// AttrService names the Service, in the object's namespace, that a step is about.
	AttrService = "service"
)

// The hops of a request, in the order in which it meets them.
const (
	HopEdge   = "edge"
	HopClient = "client sidecar"
	HopServer = "server sidecar"
)

// FirstAnswer is the step that ends a journey, or begins the name of it.
const FirstAnswer = "first answered request"

// A Recorder takes spans. Record never blocks and may be called from any goroutine.
type Recorder interface {
	Record(Span)
}

// Discard is a Recorder that forgets.
var Discard Recorder = discard{}

type discard struct{}

func (discard) Record(Span) {}

// TraceOf returns the journey that obj belongs to: the one in its annotation, else its own.
func TraceOf(obj metav1.Object) TraceID {
	if id, ok := parse(obj.GetAnnotations()[Annotation]); ok {
		return id
	}
	return TraceID(strings.ReplaceAll(string(obj.GetUID()), "-", ""))
}

// Inherit makes child, which is about to be created, part of parent's journey.
func Inherit(child, parent metav1.Object) {
	id := TraceOf(parent)
	if len(id) != 32 {
		return
	}
	a := child.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	a[Annotation] = "00-" + string(id) + "-" + spanOf(parent.GetUID()) + "-01"
	child.SetAnnotations(a)
}

// Step returns a span of obj's journey from start until now.
func Step(component, step, kind string, obj metav1.Object, start time.Time) Span {
	return Span{
		Trace: TraceOf(obj), Component: component, Step: step,
		Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		Start: start, End: time.Now(),
	}
}

// Moment returns a span of obj's journey that took no time.
func Moment(component, step, kind string, obj metav1.Object, at time.Time) Span {
	s := Step(component, step, kind, obj, at)
	s.End = at
	return s
}

// With returns the span with attributes added, given as name, value, name, value; an
// empty value adds nothing.
func (s Span) With(pairs ...string) Span {
	attrs := make(map[string]string, len(s.Attrs)+len(pairs)/2)
	maps.Copy(attrs, s.Attrs)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs[pairs[i]] = pairs[i+1]
		}
	}
	if s.Attrs = attrs; len(attrs) == 0 {
		s.Attrs = nil
	}
	return s
}

// On returns the span as one of a node.
func (s Span) On(node string) Span {
	s.Node = node
	return s
}

// Parse returns the trace of a W3C traceparent; ok is false when s is not one.
func Parse(s string) (id TraceID, ok bool) { return parse(s) }

func parse(s string) (TraceID, bool) {
	// version 2, trace 32, span 16, flags 2, three dashes
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return "", false
	}
	id := s[3:35]
	if strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return "", false
	}
	return TraceID(id), true
}

// spanOf derives a span ID from an object's UID: its first 16 hex digits.
func spanOf(uid types.UID) string {
	hex := strings.ReplaceAll(string(uid), "-", "")
	if len(hex) < 16 {
		return "0000000000000001"
	}
	return hex[:16]
}
