package pilot

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/mesh"
)

// Config is what the control plane needs.
type Config struct {
	// Informers have Services, EndpointSlices, Pods and Nodes; others may use them too.
	Informers informers.SharedInformerFactory
	// Dynamic reads Istio's resources, whose definitions must be there.
	Dynamic dynamic.Interface
	// Domain of the cluster: "cluster.local".
	Domain string
	// Callers finds out who opens a stream; nil lets everybody in, for tests.
	Callers mesh.Authenticator
	// Journey gets the steps of proxies, and Shift is what is to be added to the times
	// of a node; nil: nobody wants to know.
	Journey journey.Recorder
	Shift   func(node string) time.Duration
	Log     *slog.Logger
}

// Pilot serves xDS.
type Pilot struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	cfg     Config
	sources *sources
	world   atomic.Pointer[World]
	nonces  atomic.Uint64
	ready   chan struct{} // closed when there is a world
	closing chan struct{} // closed when Run ends

	mu      sync.Mutex                 // guards the following
	streams map[chan struct{}]struct{} // told of new worlds
	dirty   bool                       // more than endpoints has changed
	hosts   map[string]bool            // whose endpoints have changed
	wake    chan struct{}
}

// New returns a control plane. Nothing runs yet.
func New(c Config) *Pilot {
	p := &Pilot{
		cfg: c, ready: make(chan struct{}), closing: make(chan struct{}),
		streams: map[chan struct{}]struct{}{}, hosts: map[string]bool{}, wake: make(chan struct{}, 1),
	}
	core := c.Informers.Core().V1()
	p.sources = &sources{
		domain: c.Domain, services: core.Services().Lister(), pods: core.Pods().Lister(), nodes: core.Nodes().Lister(),
		slices: c.Informers.Discovery().V1().EndpointSlices().Lister(), store: newStore(c.Log, p.changed),
	}
	return p
}

// Register adds ADS to a gRPC server.
func (p *Pilot) Register(r grpc.ServiceRegistrar) {
	discovery.RegisterAggregatedDiscoveryServiceServer(r, p)
}

// Ready is closed when the first configuration can be served.
func (p *Pilot) Ready() <-chan struct{} { return p.ready }

// changed asks for a whole new world.
func (p *Pilot) changed() {
	p.mu.Lock()
	p.dirty = true
	p.mu.Unlock()
	p.nudge()
}

// changedHost asks for the endpoints of one service anew.
func (p *Pilot) changedHost(host string) {
	p.mu.Lock()
	p.hosts[host] = true
	p.mu.Unlock()
	p.nudge()
}

func (p *Pilot) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// join returns a channel that is told of new worlds.
func (p *Pilot) join() chan struct{} {
	c := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[c] = struct{}{}
	return c
}

func (p *Pilot) leave(c chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, c)
}

// Run follows the cluster until ctx ends.
func (p *Pilot) Run(ctx context.Context) error {
	defer close(p.closing)
	release, synced, err := p.watch(ctx)
	if err != nil {
		return err
	}
	defer release()
	for _, done := range synced {
		select {
		case <-done:
		case <-ctx.Done():
			return nil
		}
	}
	p.changed()
	version := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
		p.mu.Lock()
		dirty, hosts := p.dirty, p.hosts
		p.dirty, p.hosts = false, map[string]bool{}
		p.mu.Unlock()
		old := p.world.Load()
		version++
		var next *World
		if old != nil && !dirty {
			next = p.sources.withEndpoints(old, version, hosts)
		}
		if next == nil {
			if next, err = p.sources.collect(version); err != nil {
				return fmt.Errorf("collect the mesh's configuration: %w", err)
			}
		}
		p.world.Store(next)
		if old == nil {
			close(p.ready)
		}
		p.mu.Lock()
		for c := range p.streams {
			select {
			case c <- struct{}{}:
			default:
			}
		}
		p.mu.Unlock()
	}
}

// watch registers with all informers.
func (p *Pilot) watch(ctx context.Context) (release func(), synced []<-chan struct{}, err error) {
	core := p.cfg.Informers.Core().V1()
	type registered struct {
		informer cache.SharedIndexInformer
		handle   cache.ResourceEventHandlerRegistration
	}
	var all []registered
	add := func(i cache.SharedIndexInformer, h cache.ResourceEventHandler) error {
		r, err := i.AddEventHandler(h)
		if err != nil {
			return err
		}
		all = append(all, registered{i, r})
		synced = append(synced, i.HasSyncedChecker().Done(), r.HasSyncedChecker().Done())
		return nil
	}
	release = func() {
		for _, r := range all {
			_ = r.informer.RemoveEventHandler(r.handle) // fails only on a stopped informer
		}
	}
	some := func(any) { p.changed() }
	whole := cache.ResourceEventHandlerFuncs{AddFunc: some, UpdateFunc: func(_, obj any) { p.changed() }, DeleteFunc: some}
	if err := add(core.Services().Informer(), whole); err != nil {
		return release, nil, err
	}
	slice := func(obj any) {
		if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = t.Obj
		}
		if e, ok := obj.(*discoveryv1.EndpointSlice); ok {
			p.changedHost(e.Labels[discoveryv1.LabelServiceName] + "." + e.Namespace + ".svc." + p.cfg.Domain)
		}
	}
	if err := add(p.cfg.Informers.Discovery().V1().EndpointSlices().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: slice, UpdateFunc: func(_, obj any) { slice(obj) }, DeleteFunc: slice,
	}); err != nil {
		return release, nil, err
	}
	// Of pods only labels matter: subsets and selectors go by them.
	if err := add(core.Pods().Informer(), cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, obj any) {
			a, okA := old.(*corev1.Pod)
			b, okB := obj.(*corev1.Pod)
			if okA && okB && canonical(a.Labels) != canonical(b.Labels) {
				p.changed()
			}
		},
	}); err != nil {
		return release, nil, err
	}
	synced = append(synced, core.Nodes().Informer().HasSyncedChecker().Done())
	p.cfg.Informers.StartWithContext(ctx)

	own := dynamicinformer.NewDynamicSharedInformerFactory(p.cfg.Dynamic, 0)
	for gvr, h := range p.sources.store.handlers() {
		if err := add(own.ForResource(gvr).Informer(), h); err != nil {
			return release, nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	own.Start(ctx.Done())
	stop := release
	release = func() {
		stop()
		cancel()
		own.Shutdown()
	}
	p.cfg.Log.Debug("watching the mesh's resources", base.KeyCount, len(synced))
	return release, synced, nil
}
