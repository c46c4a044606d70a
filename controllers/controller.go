package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/journey"
)

// A Key names the object to reconcile. Namespace is empty for cluster-scoped ones.
type Key = types.NamespacedName

// A Reconciler brings the object called key to its declared state. It is never
// called for the same key twice at a time. A positive duration asks for another
// call after that time, an error for one after a back-off.
type Reconciler interface {
	Reconcile(ctx context.Context, key Key) (time.Duration, error)
}

// A Runner is a Reconciler with a loop of its own beside the work queue. Run
// returns when ctx ends.
type Runner interface {
	Run(ctx context.Context) error
}

// A Controller is declared as a value. New registers with the informers and
// returns the loop's body; it must not block.
type Controller struct {
	Name    string // upstream's name: "deployment-controller"
	Reads   []schema.GroupVersionResource
	Writes  []schema.GroupVersionResource
	Workers int // reconciling at a time; zero means 5

	// Off means that it runs only when named: --controllers=foo.
	Off bool

	// New may return ErrNotConfigured to stay out.
	New func(*Setup) (Reconciler, error)
}

// ErrNotConfigured is returned by Controller.New when what the controller needs
// (a CIDR, a CA, a metadata client) is not in Env. The controller is left out.
var ErrNotConfigured = errors.New("not configured")

// Setup is one controller's view of Env, and where it says what wakes it.
type Setup struct {
	*Env
	Client   kubernetes.Interface // under the controller's own identity
	Queue    *Queue
	Recorder record.EventRecorder // under the controller's name
	Log      *slog.Logger

	name    string
	synced  []<-chan struct{}
	handles []handle
	errs    []error
}

type handle struct {
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
}

func newSetup(env *Env, name string) *Setup {
	if env.MetadataFor != nil {
		own := *env
		own.Metadata = env.MetadataFor(name)
		env = &own
	}
	return &Setup{
		Env:      env,
		Client:   env.ClientFor(name),
		Queue:    newQueue(env.Clock, env.Metrics.queue(name)),
		Recorder: env.Events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventComponent(name)}),
		Log:      env.Log.With(base.KeyComponent, name),
		name:     name,
	}
}

// Watch registers handler with informer. The loop starts after handler has seen
// everything that exists.
func (s *Setup) Watch(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("watching: %w", err))
		return
	}
	s.handles = append(s.handles, handle{informer, registration})
	s.synced = append(s.synced, informer.HasSyncedChecker().Done(), registration.HasSyncedChecker().Done())
}

// Need makes the loop start only after the informers' stores are filled. Call it
// for each informer of which only the lister is used.
func (s *Setup) Need(informers ...cache.SharedIndexInformer) {
	for _, i := range informers {
		s.synced = append(s.synced, i.HasSyncedChecker().Done())
	}
}

// Config returns how the controller reaches the API by requests of its own; nil if
// there is no way.
func (s *Setup) Config() *rest.Config {
	if s.ConfigFor == nil {
		return nil
	}
	return s.ConfigFor(s.name)
}

// Span records one step of obj's journey from start until now, with attributes: name,
// value, name, value.
func (s *Setup) Span(step, kind string, obj metav1.Object, start time.Time, attrs ...string) {
	s.Journey.Record(journey.Step(s.name, step, kind, obj, start).With(attrs...))
}

func (s *Setup) release() {
	for _, h := range s.handles {
		_ = h.informer.RemoveEventHandler(h.registration) // fails only on a stopped informer
	}
}

// eventComponent is the source under which upstream's controllers record events.
func eventComponent(name string) string {
	switch name {
	case "replicationcontroller-controller":
		return "replication-controller"
	case "endpointslice-controller":
		return "endpoint-slice-controller"
	case "endpoints-controller":
		return "endpoint-controller"
	case "node-lifecycle-controller":
		return "node-controller"
	case "taint-eviction-controller":
		return "taint-eviction-controller"
	case "disruption-controller":
		return "controllermanager"
	case "persistentvolume-binder-controller":
		return "persistentvolume-controller"
	case "persistentvolume-attach-detach-controller":
		return "attachdetach-controller"
	case "ephemeral-volume-controller":
		return "ephemeral_volume"
	case "node-ipam-controller":
		return "cidrAllocator"
	case "horizontal-pod-autoscaler-controller":
		return "horizontal-pod-autoscaler"
	}
	return name
}

// ErrStale is returned by a Reconciler when its cache has not caught up with its
// own writes. The key is tried again shortly, and nobody is told.
var ErrStale = errors.New("cache is behind the controller's own writes")
