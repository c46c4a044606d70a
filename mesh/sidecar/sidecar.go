package sidecar

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	pb "istio.io/api/security/v1alpha1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/engine"
	"github.com/periplus/periplus/mesh/sidecar/translate"
	"github.com/periplus/periplus/mesh/telemetry"
)

// drainTimeout is how long requests may go on when the pod ends.
const drainTimeout = 5 * time.Second

// Main is the program: it runs until ctx ends.
func Main(ctx context.Context, args []string, out io.Writer) error {
	c, err := FromEnvironment(args, os.Getenv, out)
	if err != nil {
		return err
	}
	// There is one of it for each pod: memory counts more than a little CPU.
	debug.SetGCPercent(50)
	s, err := New(c)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// A Sidecar is a proxy that follows a control plane.
type Sidecar struct {
	cfg     Config
	engine  *engine.Engine
	certs   *Certificates
	disco   *discoverer
	metrics *telemetry.Metrics
	hops    hops
	state   *translate.State
	closer  io.Closer
	version int // of snapshots; used by the discoverer's goroutine
}

// New returns a proxy. Nothing runs yet.
func New(c Config) (*Sidecar, error) {
	c.defaults()
	conn, err := connect(&c)
	if err != nil {
		return nil, fmt.Errorf("control plane %s: %w", c.ControlPlane, err)
	}
	s := &Sidecar{cfg: c, metrics: telemetry.New(), closer: conn}
	s.certs = newCertificates(c.identity(), pb.NewIstioCertificateServiceClient(conn), c.Log)
	s.engine = engine.New(engine.Config{
		OriginalDestination: c.Network.OriginalDestination, Dial: c.Network.Dial, DrainTimeout: drainTimeout, Log: c.Log,
		Listen: func(ctx context.Context, l *l7.Listener) (net.Listener, error) {
			var lc net.ListenConfig
			return lc.Listen(ctx, "tcp", s.address(l))
		},
	})
	s.state = translate.New(translate.Options{
		Certificates: s.certs, Roots: s.certs, Self: c.workload(), NodeID: c.nodeID(),
		Observers: s.observers(),
	})
	s.disco = newDiscoverer(&c, discovery.NewAggregatedDiscoveryServiceClient(conn), s.state, s.apply)
	s.disco.hops = &s.hops
	return s, nil
}

// address is where a listener listens: its own, unless a test has chosen another port.
func (s *Sidecar) address(l *l7.Listener) string {
	port := s.cfg.Ports.Outbound
	if l.Direction == "inbound" {
		port = s.cfg.Ports.Inbound
	}
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return l.Address
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

func (s *Sidecar) observers() func(inbound bool) *telemetry.Observer {
	var log *telemetry.AccessLog
	if s.cfg.AccessLog != "" {
		log = telemetry.NewAccessLog(s.cfg.Output, s.cfg.AccessLog)
	}
	make := func(inbound bool) *telemetry.Observer {
		return &telemetry.Observer{Metrics: s.metrics, Self: s.cfg.workload(), Principal: s.cfg.identity().String(), Inbound: inbound, Early: s.hops.early, Log: log}
	}
	in, out := make(true), make(false)
	return func(inbound bool) *telemetry.Observer {
		if inbound {
			return in
		}
		return out
	}
}

// apply puts the state in force.
func (s *Sidecar) apply() error {
	s.version++
	snapshot := s.state.Snapshot()
	snapshot.Version = strconv.Itoa(s.version)
	return s.engine.Apply(snapshot)
}

// Metrics are what it has counted.
func (s *Sidecar) Metrics() *telemetry.Metrics { return s.metrics }

// Engine carries out the configuration.
func (s *Sidecar) Engine() *engine.Engine { return s.engine }

// Wait returns when the proxy is ready, or ctx ends.
func (s *Sidecar) Wait(ctx context.Context) error {
	for _, c := range []chan struct{}{s.certs.first, s.disco.first} {
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Run works until ctx ends, then drains.
func (s *Sidecar) Run(ctx context.Context) error {
	defer s.closer.Close()
	status, err := newStatus(s)
	if err != nil {
		return err
	}
	tellWaiter(ctx)
	return base.RunAll(ctx,
		base.Component{Name: "certificates", Run: s.certs.Run},
		base.Component{Name: "discovery", Run: s.disco.Run},
		base.Component{Name: "proxy", Run: s.engine.Run},
		base.Component{Name: "status", Run: status.Run},
	)
}
