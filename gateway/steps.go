package gateway

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/l7"
)

// component is the gateway's name in journeys.
const component = "gateway"

// steps are what the gateway tells the journeys of its objects: that they are in
// force on this node, and the first request that was answered by each of their routes.
// What was there before this process has made its journey already.
type steps struct {
	record  journey.Recorder
	node    string
	began   time.Time
	changed func()
	since   atomic.Int64 // when the first change after the last build came; 0: none

	mu      sync.Mutex            // guards what follows
	inForce map[types.UID]int64   // generations
	answers map[answerKey]*answer // of routes that nobody has answered yet, or that somebody has
}

// answerKey is a route of an object.
type answerKey struct {
	uid  types.UID
	path string
}

func newSteps(c *Config, changed func()) *steps {
	return &steps{
		record: c.Journey, node: c.Node, began: c.Began.Truncate(time.Second), changed: changed,
		inForce: map[types.UID]int64{}, answers: map[answerKey]*answer{},
	}
}

// note remembers when a change came.
func (s *steps) note() { s.since.CompareAndSwap(0, time.Now().UnixNano()) }

// traced is an object that a build is made of.
type traced struct {
	kind string
	obj  metav1.Object
}

// Object says that a build carries out an object.
func (b *Build) Object(kind string, obj metav1.Object) {
	if b.steps != nil {
		b.traced[obj.GetUID()] = traced{kind, obj}
	}
}

// Answers returns what a route needs to notice the first request that is answered
// through it; nothing if that was noticed.
func (b *Build) Answers(kind string, obj metav1.Object, path string) []l7.Filter {
	if b.steps == nil {
		return nil
	}
	b.Object(kind, obj)
	s, key := b.steps, answerKey{obj.GetUID(), path}
	b.routes[key] = true
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[key]
	if a == nil {
		a = &answer{steps: s, kind: kind, obj: obj}
		a.seen.Store(b.first && obj.GetCreationTimestamp().Time.Before(s.began))
		s.answers[key] = a
	}
	if a.seen.Load() {
		return nil
	}
	return []l7.Filter{a}
}

// Step records a step of an object of the build, with attributes: name, value, …
func (b *Build) Step(step, kind string, obj metav1.Object, start time.Time, attrs ...string) {
	if b.steps != nil {
		b.steps.record.Record(journey.Step(component, step, kind, obj, start).On(b.steps.node).With(attrs...))
	}
}

// applied records what is in force now, and forgets what has gone.
func (s *steps) applied(b *Build, start time.Time, passive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, t := range b.traced {
		generation := t.obj.GetGeneration()
		before, known := s.inForce[uid]
		s.inForce[uid] = generation
		old := b.first && t.obj.GetCreationTimestamp().Time.Before(s.began)
		if known && before == generation || old || passive {
			continue
		}
		// What came together with an older change has not waited for that one.
		if made := t.obj.GetCreationTimestamp().Time; start.Before(made) && made.Before(time.Now()) {
			start = made
		}
		s.record.Record(journey.Step(component, "programmed in the edge", t.kind, t.obj, start).On(s.node))
	}
	for uid := range s.inForce {
		if _, ok := b.traced[uid]; !ok {
			delete(s.inForce, uid)
		}
	}
	for key := range s.answers {
		if !b.routes[key] {
			delete(s.answers, key)
		}
	}
}

// An answer waits for the first request that is answered through a route. Then the
// configuration is built anew, without it: later requests do not meet it.
type answer struct {
	steps *steps
	kind  string
	obj   metav1.Object
	seen  atomic.Bool
}

var _ l7.EndFilter = (*answer)(nil)

// Request implements l7.Filter.
func (a *answer) Request(*l7.Exchange) *l7.Reply { return nil }

// End implements l7.EndFilter.
func (a *answer) End(x *l7.Exchange) {
	if x.Attempts == 0 || x.Response.Local || x.Response.Status == 0 || x.Response.Status >= 500 || !a.seen.CompareAndSwap(false, true) {
		return
	}
	s := journey.Moment(component, journey.FirstAnswer, a.kind, a.obj, x.Start).On(a.steps.node)
	s.End = x.Start.Add(x.Duration)
	service, pod, endpoint := "", "", ""
	if x.Cluster != nil {
		service = x.Cluster.Metadata["service"]
	}
	if x.Endpoint != nil {
		pod, endpoint = x.Endpoint.Metadata["pod"], x.Endpoint.Address
	}
	a.steps.record.Record(s.With(
		journey.AttrHop, journey.HopEdge, journey.AttrStatus, strconv.Itoa(x.Response.Status), journey.AttrRequest, x.Request.Header.Get("x-request-id"),
		"method", x.Request.Method, "url", x.Request.Scheme+"://"+x.Request.Authority+x.Request.PathOnly(), journey.AttrService, service, "pod", pod, "endpoint", endpoint,
		"upstream", x.UpstreamTime.Round(time.Microsecond).String(),
	))
	a.steps.changed()
}
