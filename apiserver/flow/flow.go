package flow

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/base/metric"
)

var (
	schemasGVR = flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas")
	levelsGVR  = flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations")
)

// Objects reads what is stored.
type Objects interface {
	List(gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error)
	// Version changes with every change of a resource's objects.
	Version(gvr schema.GroupVersionResource) int64
	// Size is how many objects of a resource there are, and their bytes as they are stored.
	Size(gvr schema.GroupVersionResource) (objects, bytes int)
}

// Seats is how many requests are served at once, as upstream: 400 that read and 200
// that write.
const Seats = 600

// Config is what a Control is made of.
type Config struct {
	// Objects are the stored ones.
	Objects Objects
	// Seats is how many requests are served at once.
	Seats int
	// Patience is for how long requests wait.
	Patience time.Duration
	// Changed, if not nil, is called when objects have changed, in a goroutine of its own.
	Changed func()
	// Metrics are where the requests are counted; nil: new ones.
	Metrics *measure.Metrics
}

// A Control decides which requests go on, and when.
type Control struct {
	Config
	objects Objects

	dispatcher dispatcher
	watchers   watchers
	compiled   atomic.Pointer[compiled]
	mu         sync.Mutex // held while the objects are read again
	seed       maphash.Seed
}

// New returns a control over the stored objects. The server's own writes there do not
// count against anybody.
func New(config Config) *Control {
	if config.Metrics == nil {
		config.Metrics = measure.New()
	}
	c := &Control{Config: config, objects: config.Objects, seed: maphash.MakeSeed()}
	c.dispatcher.histograms = newHistograms(config.Metrics.Set)
	config.Metrics.MustRegister(c.collector(config.Metrics.Set))
	return c
}

// current returns the objects as they are now.
func (c *Control) current() *compiled {
	of := [2]int64{c.objects.Version(schemasGVR), c.objects.Version(levelsGVR)}
	now := c.compiled.Load()
	if now != nil && now.of == of {
		return now
	}
	if now != nil && !c.mu.TryLock() {
		return now // somebody else reads them
	} else if now == nil {
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	if now = c.compiled.Load(); now != nil && now.of == of {
		return now
	}
	schemas, err := c.objects.List(schemasGVR, "")
	levels, err2 := c.objects.List(levelsGVR, "")
	if now != nil && errors.Join(err, err2) != nil {
		return now
	}
	next := compile(schemas, levels)
	next.of = of
	c.dispatcher.arrange(next, c.Seats)
	c.compiled.Store(next)
	if c.Changed != nil {
		go c.Changed()
	}
	return next
}

// Enter returns when a request may go on; the ticket is to be left afterwards. It tells
// the client how it was classified. The error is for Refuse.
func (c *Control) Enter(ctx context.Context, w http.ResponseWriter, r *http.Request, s *request.State) (*Ticket, error) {
	now := c.current()
	found := now.find(s.User, &s.Info)
	if found == nil {
		return nil, nil
	}
	h := w.Header()
	h[headerSchema], h[headerLevel] = found.uids[0], found.uids[1]
	level := found.Spec.PriorityLevelConfiguration.Name
	t := &Ticket{d: &c.dispatcher, cost: c.estimate(r, s, found.widest), state: s}
	of := c.dispatcher.histograms.Of(metric.Labels{level, found.Name})
	if err := c.dispatcher.enter(ctx, t, level, found.Name, of, func() uint64 { return c.hash(found.FlowSchema, s) }, c.Patience); err != nil {
		return nil, err
	}
	return t, nil
}

// The names of the headers, in the form that http.Header has them in.
var (
	headerSchema = http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
	headerLevel  = http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
)

// Refuse answers a request that did not get a seat.
func Refuse(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}

// hash tells flows apart.
func (c *Control) hash(f *flowcontrolv1.FlowSchema, s *request.State) uint64 {
	return maphash.String(c.seed, f.Name+"\x00"+distinguisher(f, s))
}

// distinguisher is what tells a request's flow from others of its schema.
func distinguisher(f *flowcontrolv1.FlowSchema, s *request.State) string {
	if m := f.Spec.DistinguisherMethod; m != nil {
		switch m.Type {
		case flowcontrolv1.FlowDistinguisherMethodByUserType:
			return s.User.GetName()
		case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
			return s.Info.Namespace
		}
	}
	return ""
}
