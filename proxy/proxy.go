package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/journey"
)

// A failed transaction is tried again after retryMin, doubled up to retryMax.
const (
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
)

// A Proxy keeps the kernel's Service rules in line with the API.
type Proxy struct {
	cfg       Config
	families  []*family
	services  cache.SharedIndexInformer
	endpoints cache.SharedIndexInformer
	health    *healthServer
	synced    chan struct{}
	behind    atomic.Int32 // families whose first round is still to come

	mu  sync.Mutex // guards what follows
	err error      // of the last round
}

// family is one backend with its own view of the Services.
type family struct {
	backend Backend

	mu      sync.Mutex // guards tracker
	tracker *tracker
	wake    chan struct{} // holds one token while there is something to do
}

// New returns a proxy. Call it before the informers are started.
func New(cfg Config) (*Proxy, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	p := &Proxy{
		cfg:       cfg,
		services:  cfg.Informers.Core().V1().Services().Informer(),
		endpoints: cfg.Informers.Discovery().V1().EndpointSlices().Informer(),
		health:    newHealthServer(cfg.Log),
		synced:    make(chan struct{}),
	}
	for _, b := range cfg.Backends {
		p.families = append(p.families, &family{
			backend: b,
			tracker: newTracker(cfg.Node, b.IPv6()),
			wake:    make(chan struct{}, 1),
		})
	}
	return p, nil
}

// Synced is closed when all rules are in the kernel for the first time.
func (p *Proxy) Synced() <-chan struct{} { return p.synced }

// Healthy returns nil while the kernel holds what the API says, else why not.
func (p *Proxy) Healthy() error {
	select {
	case <-p.synced:
	default:
		return errors.New("service rules are not programmed yet")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Run programs rules until ctx ends. The rules stay when it returns.
func (p *Proxy) Run(ctx context.Context) error {
	sr, err := p.services.AddEventHandler(p.serviceHandler())
	if err != nil {
		return fmt.Errorf("watch Services: %w", err)
	}
	defer func() { _ = p.services.RemoveEventHandler(sr) }()
	er, err := p.endpoints.AddEventHandler(p.sliceHandler())
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	defer func() { _ = p.endpoints.RemoveEventHandler(er) }()

	for _, synced := range []<-chan struct{}{sr.HasSyncedChecker().Done(), er.HasSyncedChecker().Done()} {
		select {
		case <-synced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var running sync.WaitGroup
	p.behind.Store(int32(len(p.families)))
	for _, f := range p.families {
		running.Go(func() { p.serve(ctx, f) })
	}
	running.Wait()
	p.health.close()
	return nil
}

// inStep is called once by each family, after its first round.
func (p *Proxy) inStep() {
	if p.behind.Add(-1) > 0 {
		return
	}
	close(p.synced)
	if p.cfg.OnSynced != nil {
		p.cfg.OnSynced()
	}
}

// serve is the loop of one backend: wait for an event, take all that has
// changed, program it.
func (p *Proxy) serve(ctx context.Context, f *family) {
	log := p.cfg.Log.With("backend", f.backend.Name())
	replace, first, delay := true, true, retryMin
	var retry <-chan time.Time
	for {
		if !replace || retry != nil {
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
				if retry != nil {
					continue // in a back-off; the round to come takes it along
				}
			case <-f.backend.Lost():
				log.Warn("service rules were removed by somebody else; programming them again")
				replace = true
			case <-retry:
				retry = nil
			}
		}
		start := time.Now()
		r, err := p.round(ctx, f, replace)
		if f == p.families[0] {
			p.health.update(r.updates)
		}
		p.setErr(err)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			log.Error("cannot program service rules; will try again", base.KeyError, err, "after", delay)
			replace, retry = true, time.After(delay)
			delay = min(2*delay, retryMax)
			continue
		}
		replace, delay = false, retryMin
		if first {
			first = false
			log.Info("service rules programmed", "ports", len(r.updates), base.KeyDuration, time.Since(start))
			p.inStep()
			continue
		}
		p.record(r)
	}
}

// round programs one step: everything when replace, else what has changed.
func (p *Proxy) round(ctx context.Context, f *family, replace bool) (round, error) {
	f.mu.Lock()
	r := f.tracker.take()
	var all []*Port
	if replace {
		all = f.tracker.all()
	}
	f.mu.Unlock()
	switch {
	case replace:
		return r, f.backend.Replace(ctx, all)
	case len(r.updates) == 0:
		return r, nil
	default:
		return r, f.backend.Apply(ctx, r.updates)
	}
}

func (p *Proxy) setErr(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// record tells the journeys of the Services that their rules are in place.
func (p *Proxy) record(r round) {
	for _, c := range r.causes {
		if c.service == nil {
			continue
		}
		span := journey.Step("proxy", "service rules programmed", "Service", c.service, c.since)
		if c.slice != nil {
			// The slice knows whose pods came: it belongs to the same journey as the
			// Service unless it says otherwise.
			if _, ok := c.slice.Annotations[journey.Annotation]; ok {
				span = journey.Step("proxy", "service rules programmed", "EndpointSlice", c.slice, c.since)
			}
		}
		span.Node = p.cfg.Node
		span.Attrs = map[string]string{
			"service":   c.service.Namespace + "/" + c.service.Name,
			"endpoints": strconv.Itoa(c.ready),
		}
		p.cfg.Journey.Record(span)
	}
}

// change runs f on each family's tracker and wakes the family.
func (p *Proxy) change(change func(t *tracker, now time.Time)) {
	now := time.Now()
	for _, f := range p.families {
		f.mu.Lock()
		change(f.tracker, now)
		f.mu.Unlock()
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
}

func (p *Proxy) serviceHandler() cache.ResourceEventHandler {
	set := func(obj any) {
		if svc, ok := obj.(*v1.Service); ok {
			p.change(func(t *tracker, now time.Time) { t.setService(svc, now) })
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if svc, ok := deleted(obj).(*v1.Service); ok {
				key := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
				p.change(func(t *tracker, now time.Time) { t.deleteService(key, now) })
			}
		},
	}
}

func (p *Proxy) sliceHandler() cache.ResourceEventHandler {
	set := func(obj any) {
		if s, ok := obj.(*discoveryv1.EndpointSlice); ok {
			p.change(func(t *tracker, now time.Time) { t.setSlice(s, now) })
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(old, obj any) {
			o, ok1 := old.(*discoveryv1.EndpointSlice)
			n, ok2 := obj.(*discoveryv1.EndpointSlice)
			if ok1 && ok2 {
				a, _ := owner(o)
				if b, _ := owner(n); a != b {
					p.change(func(t *tracker, now time.Time) { t.deleteSlice(o, now) })
				}
			}
			set(obj)
		},
		DeleteFunc: func(obj any) {
			if s, ok := deleted(obj).(*discoveryv1.EndpointSlice); ok {
				p.change(func(t *tracker, now time.Time) { t.deleteSlice(s, now) })
			}
		},
	}
}

// deleted unwraps the object of a deletion that the informer noticed late.
func deleted(obj any) any {
	if late, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return late.Obj
	}
	return obj
}
