package insight

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// An Object is one that has a name, of any kind.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Ref names an object. Namespace is empty for kinds that have none.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is how kubectl names it: pod/web.
func (r Ref) String() string { return strings.ToLower(r.Kind) + "/" + r.Name }

// RefOf names an object.
func RefOf(o Object) Ref {
	return Ref{KindOf(o), o.GetNamespace(), o.GetName()}
}

// KindOf is the kind of an object, which lists leave out.
func KindOf(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil || len(kinds) == 0 {
		return reflect.TypeOf(o).Elem().Name()
	}
	return kinds[0].Kind
}

// A Snapshot is what was read of a cluster at one time. It is not changed once it
// is read.
type Snapshot struct {
	Now time.Time
	// Namespace is the one whose objects were read.
	Namespace string
	objects   map[reflect.Type][]Object
	unread    map[reflect.Type]error
	logs      map[logKey]string
	ports     map[portKey]error
	names     map[string]error
}

type logKey struct {
	pod, container string
	previous       bool
}

type portKey struct {
	pod  string
	port int32
}

// NewSnapshot makes one of objects.
func NewSnapshot(now time.Time, namespace string, objects ...Object) *Snapshot {
	s := &Snapshot{
		Now: now, Namespace: namespace, objects: map[reflect.Type][]Object{}, unread: map[reflect.Type]error{},
		logs: map[logKey]string{}, ports: map[portKey]error{}, names: map[string]error{},
	}
	for _, o := range objects {
		s.add(o)
	}
	for _, list := range s.objects {
		slices.SortFunc(list, func(a, b Object) int {
			return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		})
	}
	return s
}

func (s *Snapshot) add(o Object) {
	t := reflect.TypeOf(o)
	s.objects[t] = append(s.objects[t], o)
}

// All returns the objects of a kind in a namespace, by name. An empty namespace
// means all that were read.
func All[T Object](s *Snapshot, namespace string) []T {
	var out []T
	for _, o := range s.objects[reflect.TypeFor[T]()] {
		if namespace == "" || o.GetNamespace() == namespace {
			out = append(out, o.(T))
		}
	}
	return out
}

// Get finds an object. Kinds without namespaces have an empty one.
func Get[T Object](s *Snapshot, namespace, name string) (T, bool) {
	for _, o := range s.objects[reflect.TypeFor[T]()] {
		if o.GetName() == name && o.GetNamespace() == namespace {
			return o.(T), true
		}
	}
	var none T
	return none, false
}

// Missing reports that an object is known not to be there: its kind was read.
func Missing[T Object](s *Snapshot, namespace, name string) bool {
	if s.unread[reflect.TypeFor[T]()] != nil {
		return false
	}
	_, ok := Get[T](s, namespace, name)
	return !ok
}

// Read reports whether the objects of a kind could be read.
func Read[T Object](s *Snapshot) bool { return s.unread[reflect.TypeFor[T]()] == nil }

// Find finds an object by its reference.
func (s *Snapshot) Find(r Ref) (Object, bool) {
	for _, list := range s.objects {
		for _, o := range list {
			if o.GetName() == r.Name && o.GetNamespace() == r.Namespace && KindOf(o) == r.Kind {
				return o, true
			}
		}
	}
	return nil, false
}

// Objects returns all objects, sorted by kind, namespace and name.
func (s *Snapshot) Objects() []Object {
	var out []Object
	for _, list := range s.objects {
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(KindOf(a), KindOf(b)), strings.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// Unread says what could not be read, and why, in the order of the kinds' names.
func (s *Snapshot) Unread() []string {
	var out []string
	for t, err := range s.unread {
		out = append(out, fmt.Sprintf("%s: %v", t.Elem().Name(), err))
	}
	slices.Sort(out)
	return out
}

// SetLog notes the end of a container's log.
func (s *Snapshot) SetLog(pod, container string, previous bool, text string) {
	s.logs[logKey{pod, container, previous}] = text
}

// Log returns the last lines that a container wrote: those of the container before
// if there was one, else those of this one.
func (s *Snapshot) Log(pod, container string) []string {
	text := s.logs[logKey{pod, container, true}]
	if strings.TrimSpace(text) == "" {
		text = s.logs[logKey{pod, container, false}]
	}
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n "); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// SetPort notes whether a port of a pod accepted a connection: nil, or why not.
func (s *Snapshot) SetPort(pod string, port int32, err error) { s.ports[portKey{pod, port}] = err }

// Port returns what a connection to a port of a pod met; tried is false when
// nobody tried.
func (s *Snapshot) Port(pod string, port int32) (err error, tried bool) { //nolint:revive // the error is the value
	err, tried = s.ports[portKey{pod, port}]
	return err, tried
}

// SetName notes whether a DNS name could be resolved.
func (s *Snapshot) SetName(name string, err error) { s.names[name] = err }

// Name returns how a DNS name was resolved.
func (s *Snapshot) Name(name string) (err error, tried bool) { //nolint:revive // the error is the value
	err, tried = s.names[name]
	return err, tried
}

// Events returns the events about an object, oldest first, each text once.
func (s *Snapshot) Events(o Object) []*corev1.Event {
	ref := RefOf(o)
	var out []*corev1.Event
	for _, e := range All[*corev1.Event](s, "") {
		of := e.InvolvedObject
		if of.Kind != ref.Kind || of.Name != ref.Name || of.Namespace != ref.Namespace {
			continue
		}
		if of.UID != "" && o.GetUID() != "" && of.UID != o.GetUID() && ref.Kind != "Node" {
			continue // of an object of the same name before
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b *corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	return out
}

func lastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// LastEvent returns the newest event about an object with one of the reasons.
func (s *Snapshot) LastEvent(o Object, reasons ...string) *corev1.Event {
	for _, e := range slices.Backward(s.Events(o)) {
		if slices.Contains(reasons, e.Reason) {
			return e
		}
	}
	return nil
}

// EventLine is an event as a line of evidence.
func (s *Snapshot) EventLine(e *corev1.Event) string {
	count := e.Count
	if e.Series != nil {
		count = e.Series.Count
	}
	times := ""
	if count > 1 {
		times = fmt.Sprintf(" %d times, last", count)
	}
	return fmt.Sprintf("event %s%s %s ago: %s", e.Reason, times, s.Age(lastSeen(e)), strings.TrimSpace(e.Message))
}

// Age is how long ago a time was, as kubectl shows it: 12s, 5m, 3h, 2d.
func (s *Snapshot) Age(t time.Time) string {
	d := s.Now.Sub(t)
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
