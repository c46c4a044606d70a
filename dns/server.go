package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sync/errgroup"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/link"
)

// Reasons of Healthy.
var (
	// ErrNotReady is returned before the informers have synced and the listeners are open.
	ErrNotReady = errors.New("cluster DNS does not answer yet")
	// ErrStopped is returned after Run has returned.
	ErrStopped = errors.New("cluster DNS has stopped")
)

// A Server answers the names of the cluster on one node.
type Server struct {
	cfg       Config
	index     *index
	zone      *zone
	forwarder *forwarder
	slots     chan struct{} // one for each question that waits for an upstream resolver

	services  cache.SharedIndexInformer
	endpoints cache.SharedIndexInformer
	spaces    cache.SharedIndexInformer // nil without Config.Namespaces

	ready chan struct{}

	mu     sync.Mutex // guards health
	health error
}

// New returns a server. Call it before the informers are started.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg:       cfg,
		index:     newIndex(cfg.Domain),
		forwarder: newForwarder(newUpstreams(cfg.ResolvConf, systemdResolvers, cfg.Address), cfg.StubDomains, cfg.Log),
		slots:     make(chan struct{}, maxWaiting),
		services:  cfg.Informers.Core().V1().Services().Informer(),
		endpoints: cfg.Informers.Discovery().V1().EndpointSlices().Informer(),
		ready:     make(chan struct{}),
		health:    ErrNotReady,
	}
	var namespaces corelisters.NamespaceLister
	if cfg.Namespaces != nil {
		s.spaces, namespaces = cfg.Namespaces.Informer(), cfg.Namespaces.Lister()
	}
	s.zone = newZone(cfg.Domain, cfg.Address, s.index, namespaces)
	return s, nil
}

// Ready is closed when names are answered.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Healthy returns nil while names are answered, else why not.
func (s *Server) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

func (s *Server) setHealth(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = err
}

// Run answers names until ctx ends, in the network namespace of the calling
// thread: it waits for the informers, puts the address on lo and opens the
// listeners. When it returns they are closed; the address stays, so that the next
// start finds nothing to do. It is called once.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() {
		if err == nil {
			s.setHealth(ErrStopped)
		} else {
			s.setHealth(err)
		}
	}()
	undo, err := s.follow(ctx)
	defer undo()
	if err != nil || ctx.Err() != nil {
		return err
	}
	if !s.cfg.Address.IsLoopback() {
		if err := link.AddLoopback(s.cfg.Address); err != nil {
			return fmt.Errorf("put the cluster DNS address on lo (needs CAP_NET_ADMIN): %w", err)
		}
	}
	udp, tcp, err := listen(ctx, netip.AddrPortFrom(s.cfg.Address, s.cfg.Port))
	if err != nil {
		return fmt.Errorf("cluster DNS: %w; another DNS server may listen on all addresses of this machine", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for range udpReaders() {
		group.Go(func() error { return s.serveUDP(ctx, udp, group) })
	}
	group.Go(func() error { return s.serveTCP(ctx, tcp, group) })
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(udp.Close(), tcp.Close())
	})
	s.setHealth(nil)
	close(s.ready)
	s.cfg.Log.Info("Cluster DNS answers", base.KeyAddress, tcp.Addr().String())
	if s.cfg.OnReady != nil {
		s.cfg.OnReady()
	}
	return group.Wait()
}

// follow keeps the index up to date until undo is called, and returns when it is
// complete or ctx has ended.
func (s *Server) follow(ctx context.Context) (undo func(), err error) {
	services, err := s.services.AddEventHandler(s.index.serviceHandler())
	if err != nil {
		return func() {}, fmt.Errorf("watch Services: %w", err)
	}
	undo = func() { _ = s.services.RemoveEventHandler(services) }
	endpoints, err := s.endpoints.AddEventHandler(s.index.sliceHandler())
	if err != nil {
		return undo, fmt.Errorf("watch EndpointSlices: %w", err)
	}
	undo = func() {
		_ = s.services.RemoveEventHandler(services)
		_ = s.endpoints.RemoveEventHandler(endpoints)
	}
	synced := []cache.DoneChecker{services.HasSyncedChecker(), endpoints.HasSyncedChecker()}
	if s.spaces != nil {
		synced = append(synced, s.spaces.HasSyncedChecker())
	}
	for _, c := range synced {
		select {
		case <-c.Done():
		case <-ctx.Done():
			return undo, nil
		}
	}
	return undo, nil
}

// listen opens both listeners.
func listen(ctx context.Context, at netip.AddrPort) (*net.UDPConn, net.Listener, error) {
	var config net.ListenConfig
	tcp, err := config.Listen(ctx, "tcp", at.String())
	if err != nil {
		return nil, nil, err
	}
	udp, err := config.ListenPacket(ctx, "udp", tcp.Addr().String())
	if err != nil {
		return nil, nil, errors.Join(err, tcp.Close())
	}
	return udp.(*net.UDPConn), tcp, nil
}
