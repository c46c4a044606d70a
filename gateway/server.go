package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/engine"
)

// A Server is the gateway of one node.
type Server struct {
	cfg     Config
	objects *objects
	limits  *limits
	engine  *engine.Engine
	nodes   corelisters.NodeLister

	services, slices, nodeInformer cache.SharedIndexInformer
	secrets                        cache.SharedIndexInformer // nil: single ones are followed

	steps *steps // nil: nobody wants to know

	// trigger has one token when something has changed since the last build.
	trigger chan struct{}

	// Of the goroutine that builds.
	builds     int
	grants     *grants // nil: none
	listening  map[int]*listening
	complained map[int]bool // ports of which the log knows that they are taken

	mu   sync.Mutex // guards last
	last *Build     // what the last build has asked for
}

// New returns a gateway. Call it before the informers are started.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	core := cfg.Informers.Core().V1()
	s := &Server{
		cfg: cfg, limits: newLimits(), trigger: make(chan struct{}, 1),
		services: core.Services().Informer(), slices: cfg.Informers.Discovery().V1().EndpointSlices().Informer(),
		nodeInformer: core.Nodes().Informer(), nodes: core.Nodes().Lister(),
		listening: map[int]*listening{}, complained: map[int]bool{},
	}
	if _, ok := s.slices.GetIndexer().GetIndexers()[bySlice]; !ok {
		if err := s.slices.AddIndexers(cache.Indexers{bySlice: sliceService}); err != nil {
			return nil, fmt.Errorf("gateway: index EndpointSlices: %w", err)
		}
	}
	s.objects = &objects{services: core.Services().Lister(), slices: s.slices.GetIndexer(), mesh: cfg.Mesh}
	if cfg.SecretClient != nil {
		s.objects.secrets = newNamedSecrets(cfg.SecretClient, s.changed)
	} else {
		s.secrets = core.Secrets().Informer()
		s.objects.secrets = allSecrets{core.Secrets().Lister()}
	}
	if cfg.GrantClient != nil {
		s.grants = &grants{client: cfg.GrantClient, group: cfg.Nodes}
	}
	if cfg.Journey != nil {
		s.steps = newSteps(&cfg, s.changed)
	}
	s.engine = engine.New(engine.Config{Listen: cfg.Listen, DrainTimeout: cfg.DrainTimeout, Log: cfg.Log})
	return s, nil
}

// Engine is the proxy, for status pages.
func (s *Server) Engine() *engine.Engine { return s.engine }

// Refresh builds anew: the Mesh knows more than before, or the process that serves.
func (s *Server) Refresh() { s.changed() }

func (s *Server) changed() {
	if s.steps != nil {
		s.steps.note()
	}
	select {
	case s.trigger <- struct{}{}:
	default:
	}
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	defer s.engine.Close()
	defer s.objects.secrets.close()
	group, ctx := errgroup.WithContext(ctx)
	var syncing sync.WaitGroup
	for _, source := range s.cfg.Sources {
		syncing.Add(1)
		group.Go(func() error {
			synced := sync.OnceFunc(syncing.Done)
			defer synced()
			return source.Run(ctx, synced, s.changed)
		})
	}
	group.Go(func() error {
		// What is built first is complete: after a restart nobody gets a 404 for a
		// route that has not been read yet.
		syncing.Wait()
		if ctx.Err() == nil && s.cfg.OnActive != nil {
			s.cfg.OnActive(s.active())
		}
		return s.serve(ctx)
	})
	return group.Wait()
}

// serve builds whenever something has changed.
func (s *Server) serve(ctx context.Context) error {
	following := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.trigger:
		}
		active := s.active()
		if s.cfg.OnActive != nil {
			s.cfg.OnActive(active)
		}
		if s.cfg.Passive && !s.cfg.WriteStatus {
			continue
		}
		if !following {
			if !active {
				if s.steps != nil {
					s.steps.since.Store(0)
				}
				continue
			}
			undo, err := s.follow(ctx)
			defer undo()
			if err != nil || ctx.Err() != nil {
				return err
			}
			following = true
		}
		s.build(ctx)
	}
}

func (s *Server) active() bool {
	for _, source := range s.cfg.Sources {
		if source.Active() {
			return true
		}
	}
	return false
}

// follow listens to the objects that builds ask for, and returns when all of them are known.
func (s *Server) follow(ctx context.Context) (undo func(), err error) {
	var registered []func()
	undo = func() {
		for _, f := range registered {
			f()
		}
	}
	type followed struct {
		informer cache.SharedIndexInformer
		matters  func(obj any) bool
	}
	for _, f := range []followed{
		{s.services, s.serviceMatters}, {s.slices, s.sliceMatters}, {s.secrets, s.secretMatters}, {s.nodeInformer, func(any) bool { return s.cfg.WriteStatus }},
	} {
		if f.informer == nil {
			continue
		}
		changed := func(obj any) {
			if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = t.Obj
			}
			if f.matters(obj) {
				s.changed()
			}
		}
		r, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, DeleteFunc: changed,
			UpdateFunc: func(old, obj any) {
				if a, ok := old.(*corev1.Node); ok && sameAddresses(a, obj.(*corev1.Node)) {
					return // heartbeats change nothing here
				}
				changed(obj)
			},
		})
		if err != nil {
			return undo, fmt.Errorf("gateway: %w", err)
		}
		registered = append(registered, func() { _ = f.informer.RemoveEventHandler(r) })
		select {
		case <-r.HasSyncedChecker().Done():
		case <-ctx.Done():
			return undo, nil
		}
	}
	return undo, nil
}

func (s *Server) asked() *Build {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *Server) serviceMatters(obj any) bool {
	o, ok := obj.(*corev1.Service)
	b := s.asked()
	return ok && b != nil && b.services[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}]
}

func (s *Server) sliceMatters(obj any) bool {
	o, ok := obj.(*discoveryv1.EndpointSlice)
	b := s.asked()
	return ok && b != nil && b.services[types.NamespacedName{Namespace: o.Namespace, Name: o.Labels[discoveryv1.LabelServiceName]}]
}

func (s *Server) secretMatters(obj any) bool {
	o, ok := obj.(*corev1.Secret)
	b := s.asked()
	return ok && b != nil && b.secrets[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}]
}

// build makes the configuration anew and reports.
func (s *Server) build(ctx context.Context) {
	start := time.Now()
	b := newBuild(ctx, s.objects, s.limits, s.cfg.HTTPPort, s.cfg.HTTPSPort)
	if b.first = s.builds == 0; s.steps != nil {
		b.trace(s.steps)
		if since := s.steps.since.Swap(0); since != 0 {
			start = time.Unix(0, since)
		}
	}
	for _, source := range s.cfg.Sources {
		source.Build(b)
	}
	s.limits.sweep()
	s.objects.secrets.keep(b.secrets)
	s.mu.Lock()
	s.last = b
	s.mu.Unlock()
	s.builds++
	snapshot := s.snapshot(b, s.engine.Snapshot())
	var taken map[int]error
	switch {
	case !s.cfg.Passive:
		taken = s.apply(snapshot)
		if s.cfg.OnApplied != nil {
			s.cfg.OnApplied(taken)
		}
	case s.cfg.Taken != nil:
		taken = s.cfg.Taken()
	}
	if s.steps != nil {
		s.steps.applied(b, start, s.cfg.Passive)
	}
	if !s.cfg.WriteStatus {
		return
	}
	if s.grants != nil {
		if err := s.grants.write(ctx, b); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("Nodes could not be allowed to read certificates", base.KeyError, err)
		}
	}
	r := &Result{Addresses: s.addresses(), Ports: taken, Build: b}
	for _, source := range s.cfg.Sources {
		if err := source.Report(ctx, r); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("Status of the gateway's objects could not be written", base.KeyError, err)
		}
	}
}

// apply puts the snapshot in force and returns the ports that could not be opened.
func (s *Server) apply(snapshot *l7.Snapshot) map[int]error {
	err := s.engine.Apply(snapshot)
	taken := map[int]error{}
	for _, e := range unjoin(err) {
		var l *engine.ListenerError
		if !errors.As(e, &l) {
			s.cfg.Log.Error("The gateway's configuration could not be applied", base.KeyError, e)
			continue
		}
		_, text, _ := net.SplitHostPort(l.Address)
		port, _ := strconv.Atoi(text)
		cause := l.Err
		if errors.Is(cause, syscall.EADDRINUSE) {
			cause = ErrPortTaken
		}
		taken[port] = cause
		if !s.complained[port] {
			s.cfg.Log.Error("The gateway cannot listen: stop the other program, or choose other ports with --ingress-http-port and --ingress-https-port", "port", port, base.KeyError, cause)
		}
	}
	clear(s.complained)
	for port := range taken {
		s.complained[port] = true
	}
	return taken
}

func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // the joined error itself
		return j.Unwrap()
	}
	return []error{err}
}

// addresses are those of the nodes that are ready.
func (s *Server) addresses() []Address {
	nodes, err := s.nodes.List(everything)
	if err != nil {
		return nil
	}
	var out []Address
	for _, n := range nodes {
		if !conditions.NodeReady(n) {
			continue
		}
		for _, a := range n.Status.Addresses {
			out = append(out, Address{Type: a.Type, Value: a.Address})
		}
	}
	sortAddresses(out)
	return out
}
