package journey

import (
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
}

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
