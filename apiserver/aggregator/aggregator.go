package aggregator

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/admission/webhook"
	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/discovery"
	"github.com/periplus/periplus/apiserver/rest"
)

var (
	apiServices    = apiregistrationv1.SchemeGroupVersion.WithResource("apiservices")
	definitions    = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	services       = corev1.SchemeGroupVersion.WithResource("services")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

// Config is what a Server is made of.
type Config struct {
	// Rest holds the objects, and serves what is not handed to others.
	Rest *rest.Server
	// ProxyClient is the certificate by which extension API servers know this server
	// (the front proxy's); nil: there is none.
	ProxyClient func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
	// ClusterIPs reaches Services at their cluster IPs instead of at ready endpoints.
	ClusterIPs bool
	Log        *slog.Logger
}

// A Server is the aggregation layer of one API server.
type Server struct {
	config Config
	dialer webhook.Services
	// changed has an item when APIServices or definitions have changed since the last look.
	changed chan struct{}
	local   localState

	remotes  map[string]*remote // by name of the APIService; Run's alone
	backends atomic.Pointer[map[schema.GroupVersion]*remote]
	tableMu  sync.Mutex // held while a table is made and published
	table    atomic.Pointer[discovery.Table]
}

// New returns a server that hands nothing on before Run.
func New(config Config) *Server {
	s := &Server{
		config: config, dialer: webhook.Services{Objects: config.Rest}, changed: make(chan struct{}, 1), remotes: map[string]*remote{},
	}
	s.backends.Store(&map[schema.GroupVersion]*remote{})
	return s
}

// Table is what discovery is to know.
func (s *Server) Table() *discovery.Table { return s.table.Load() }

// Run keeps APIServices and follows them until ctx ends. The watch caches must be loaded.
func (s *Server) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.local.builtIn = s.served()
	wake := func([]cacher.Event) { s.poke() }
	running.Go(func() { s.follow(ctx, apiServices, wake) })
	running.Go(func() { s.follow(ctx, definitions, wake) })
	var unwatch context.CancelFunc // ends the watches for remotes
	for first := true; ; first = false {
		s.reconcile(ctx, &running, first)
		switch {
		case len(s.remotes) > 0 && unwatch == nil:
			var watching context.Context
			watching, unwatch = context.WithCancel(ctx)
			running.Go(func() { s.follow(watching, services, s.wakeRemotes) })
			running.Go(func() { s.follow(watching, endpointSlices, s.wakeRemotes) })
		case len(s.remotes) == 0 && unwatch != nil:
			unwatch()
			unwatch = nil
		}
		select {
		case <-ctx.Done():
			if unwatch != nil {
				unwatch()
			}
			return nil
		case <-s.changed:
		}
	}
}

func (s *Server) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// follow calls handle with the changes of a resource; with none when some may have been missed.
func (s *Server) follow(ctx context.Context, gvr schema.GroupVersionResource, handle func([]cacher.Event)) {
	objects := s.config.Rest.Objects(gvr)
	if objects == nil || objects.Cache == nil {
		return
	}
	_, watch := objects.Cache.SnapshotAndWatch()
	handle(nil)
	buf := make([]cacher.Event, 0, 64)
	for {
		events, err := watch.Next(ctx, buf[:0])
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			_, watch = objects.Cache.SnapshotAndWatch()
			events = nil
		}
		handle(events)
	}
}

// wakeRemotes lets the remotes that changes are about look again.
func (s *Server) wakeRemotes(events []cacher.Event) {
	about := map[types.NamespacedName]bool{}
	for i := range events {
		switch obj := events[i].Object.Obj.(type) {
		case *corev1.Service:
			about[types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}] = true
		case *discoveryv1.EndpointSlice:
			about[types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[discoveryv1.LabelServiceName]}] = true
		}
	}
	for _, r := range *s.backends.Load() {
		if len(events) == 0 || about[types.NamespacedName{Namespace: r.spec.Service.Namespace, Name: r.spec.Service.Name}] {
			r.poke()
		}
	}
}

func (s *Server) list() []*apiregistrationv1.APIService {
	objects, err := s.config.Rest.List(apiServices, "")
	if err != nil {
		return nil
	}
	out := make([]*apiregistrationv1.APIService, len(objects))
	for i, obj := range objects {
		out[i] = obj.(*apiregistrationv1.APIService)
	}
	return out
}

// reconcile brings local APIServices, remotes and the table in line with what there is.
func (s *Server) reconcile(ctx context.Context, running *sync.WaitGroup, first bool) {
	all := s.list()
	s.register(ctx, all, first)
	there := map[string]bool{}
	var begun []func()
	for _, a := range all {
		if a.Spec.Service == nil || a.DeletionTimestamp != nil || a.Spec.Group == "" {
			s.markLocal(ctx, a)
			continue
		}
		there[a.Name] = true
		now := s.remotes[a.Name]
		if now != nil && now.uid == a.UID && equality.Semantic.DeepEqual(now.spec, a.Spec) {
			continue
		}
		if now != nil {
			now.stop()
		}
		own, stop := context.WithCancel(ctx)
		r := s.remote(a)
		r.stop = stop
		s.remotes[a.Name] = r
		begun = append(begun, func() { s.keep(own, r) })
	}
	for name, r := range s.remotes {
		if !there[name] {
			r.stop()
			delete(s.remotes, name)
		}
	}
	backends := make(map[schema.GroupVersion]*remote, len(s.remotes))
	for _, r := range s.remotes {
		backends[r.gv] = r
	}
	s.backends.Store(&backends)
	s.publish()
	// Whoever reads what they find out is served accordingly.
	for _, keep := range begun {
		running.Go(keep)
	}
}

// publish makes the table anew.
func (s *Server) publish() {
	s.tableMu.Lock()
	defer s.tableMu.Unlock()
	backends := *s.backends.Load()
	t := &discovery.Table{Order: map[schema.GroupVersion]discovery.Order{}, Remote: make(map[schema.GroupVersion]discovery.Remote, len(backends))}
	for _, a := range s.list() {
		gv := schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}
		o := discovery.Order{Group: a.Spec.GroupPriorityMinimum, Version: a.Spec.VersionPriority}
		if o != discovery.Priority(gv) {
			t.Order[gv] = o
		}
	}
	for gv, r := range backends {
		t.Remote[gv] = r.discovered()
	}
	s.table.Store(t)
}

// Wrap hands requests for remote group versions on, and others to next.
func (s *Server) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		backends := *s.backends.Load()
		if len(backends) > 0 {
			if b := backends[groupVersionOf(r.URL.Path)]; b != nil {
				s.proxy(w, r, b)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
