package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/route"
	"github.com/periplus/periplus/l7/upstream"
)

// An Engine carries out one snapshot after the other.
type Engine struct {
	cfg   Config
	table *upstream.Table
	// now is what requests see; a request takes it once.
	now atomic.Pointer[compiled]

	mu        sync.Mutex // guards the following
	listeners map[string]*listener
	closed    bool

	// ctx ends when connections have to end at once.
	ctx  context.Context //nolint:containedctx // the engine's own life
	stop context.CancelFunc
	all  sync.WaitGroup // listeners and connections
}

// compiled is a snapshot made ready.
type compiled struct {
	snapshot  *l7.Snapshot
	routes    map[string]*route.Table
	clusters  map[string]*upstream.Cluster
	listeners map[string]*front
	virtual   map[string]*front // by address
}

// A ListenerError says that a listener could not be opened.
type ListenerError struct {
	Name    string
	Address string
	Err     error
}

// Error implements error.
func (e *ListenerError) Error() string {
	return fmt.Sprintf("listener %s at %s: %v", e.Name, e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *ListenerError) Unwrap() error { return e.Err }

// ErrClosed is returned by Apply after Run has ended.
var ErrClosed = errors.New("the engine has ended")

// New returns an engine without a configuration. Nothing runs.
func New(cfg Config) *Engine {
	cfg.defaults()
	e := &Engine{cfg: cfg, listeners: map[string]*listener{}}
	e.table = upstream.NewTable(upstream.Config{Dial: cfg.Dial, Log: cfg.Log})
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.now.Store(&compiled{snapshot: &l7.Snapshot{}})
	return e
}

// Apply puts a snapshot in force. An invalid one changes nothing. Otherwise all of it
// is in force on return, but for the listeners of which a *ListenerError (errors.As;
// several are joined) says that they could not be opened.
func (e *Engine) Apply(s *l7.Snapshot) error {
	if err := s.Validate(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	old := e.now.Load()
	next := &compiled{
		snapshot: s, clusters: e.table.Apply(s.Clusters, s.Endpoints),
		routes:    make(map[string]*route.Table, len(s.Routes)),
		listeners: make(map[string]*front, len(s.Listeners)), virtual: map[string]*front{},
	}
	for name, r := range s.Routes {
		if t := old.routes[name]; t != nil && t.Config() == r {
			next.routes[name] = t
		} else {
			next.routes[name] = route.Compile(r)
		}
	}
	for _, l := range s.Listeners {
		f := old.listeners[l.Name]
		if f == nil || f.config != l {
			f = e.newFront(l)
		}
		next.listeners[l.Name] = f
		if l.Virtual {
			next.virtual[l.Address] = f
		}
	}
	e.now.Store(next)
	return e.openListeners(next)
}

// openListeners opens what is new and drains what is gone.
func (e *Engine) openListeners(c *compiled) error {
	for name, l := range e.listeners {
		f := c.listeners[name]
		if f == nil || f.config.Virtual || f.config.Address != l.address {
			delete(e.listeners, name)
			l.drain()
		}
	}
	var errs []error
	for name, f := range c.listeners {
		if f.config.Virtual || e.listeners[name] != nil {
			continue
		}
		socket, err := e.cfg.Listen(e.ctx, f.config)
		if err != nil {
			errs = append(errs, &ListenerError{name, f.config.Address, err})
			continue
		}
		l := &listener{engine: e, name: name, address: f.config.Address, socket: socket, conns: map[*conn]struct{}{}}
		e.listeners[name] = l
		e.all.Go(l.accept)
	}
	return errors.Join(errs...)
}

// Addr returns where a listener listens; nil: it does not.
func (e *Engine) Addr(listener string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.listeners[listener]; l != nil {
		return l.socket.Addr().String()
	}
	return ""
}

// Snapshot returns what is in force.
func (e *Engine) Snapshot() *l7.Snapshot { return e.now.Load().snapshot }

// Cluster returns the state of a cluster's endpoints; nil: there is no such cluster.
func (e *Engine) Cluster(name string) []upstream.Status {
	if c := e.now.Load().clusters[name]; c != nil {
		return c.Status()
	}
	return nil
}

// Run blocks until ctx ends, then drains: listeners are closed, connections end with
// the request that they serve, and after Config.DrainTimeout in any case.
func (e *Engine) Run(ctx context.Context) error {
	<-ctx.Done()
	e.Close()
	return nil
}

// Close is the end of Run, for engines that are not run.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	for name, l := range e.listeners {
		delete(e.listeners, name)
		l.drain()
	}
	e.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		e.all.Wait()
		close(ended)
	}()
	limit, cancel := context.WithTimeout(context.Background(), e.cfg.DrainTimeout)
	defer cancel()
	select {
	case <-ended:
	case <-limit.Done():
		e.cfg.Log.Info("Connections did not end in time and are closed", base.KeyDuration, e.cfg.DrainTimeout.String())
	}
	e.stop()
	<-ended
	e.table.Close()
}
