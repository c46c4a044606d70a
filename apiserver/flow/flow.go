package flow

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/request"
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
	// Count is how many objects of a resource there are.
	Count(gvr schema.GroupVersionResource) int
}

// Seats is how many requests are served at once, as upstream: 400 that read and 200
// that write.
const Seats = 600

// A Control decides which requests go on, and when.
type Control struct {
	objects  Objects
	seats    int
	patience time.Duration
	changed  func() // called in a goroutine of its own when the objects have changed

	dispatcher dispatcher
	compiled   atomic.Pointer[compiled]
	mu         sync.Mutex // held while the objects are read again
	seed       maphash.Seed
}

// New returns a control over the stored objects. Requests wait for as long as patience.
// changed, if not nil, is called when objects have changed; the server's own writes there
// do not count against anybody.
func New(objects Objects, seats int, patience time.Duration, changed func()) *Control {
	return &Control{objects: objects, seats: seats, patience: patience, changed: changed, seed: maphash.MakeSeed()}
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
	c.dispatcher.arrange(next, c.seats)
	c.compiled.Store(next)
	if c.changed != nil {
		go c.changed()
	}
	return next
}

// Enter returns when a request may go on; the ticket is to be left afterwards. It tells
// the client how it was classified. The error is for Refuse.
func (c *Control) Enter(ctx context.Context, w http.ResponseWriter, r *http.Request, s *request.State) (*Ticket, error) {
	found := c.current().find(s.User, &s.Info)
	if found == nil {
		return nil, nil
	}
	h := w.Header()
	h[headerSchema], h[headerLevel] = found.uids[0], found.uids[1]
	level := found.Spec.PriorityLevelConfiguration.Name
	t, err := c.dispatcher.enter(ctx, level, c.width(r, s), func() uint64 { return c.hash(found.FlowSchema, s) }, c.patience)
	if err != nil {
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
	key := f.Name + "\x00"
	if m := f.Spec.DistinguisherMethod; m != nil {
		switch m.Type {
		case flowcontrolv1.FlowDistinguisherMethodByUserType:
			key += s.User.GetName()
		case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
			key += s.Info.Namespace
		}
	}
	return maphash.String(c.seed, key)
}

const (
	// objectsPerSeat is how many objects of a list are the work of one seat.
	objectsPerSeat = 100
	// mostSeats is how many a request takes at most.
	mostSeats = 10
)

// width is how many seats a request takes: a list by how long it may be.
func (c *Control) width(r *http.Request, s *request.State) int {
	i := &s.Info
	if i.Verb != "list" || !i.IsResource || i.Name != "" {
		return 1
	}
	n := c.objects.Count(i.GVR())
	if r.URL.RawQuery != "" {
		if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 {
			n = min(n, limit)
		}
	}
	return max(1, min((n+objectsPerSeat-1)/objectsPerSeat, mostSeats))
}
