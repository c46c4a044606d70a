package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/l7"
)

// Config is what a Server works with.
type Config struct {
	// Sources are what makes configurations; see gateway/all.
	Sources []Source
	// Informers of Services, EndpointSlices, Nodes and, without SecretClient, Secrets.
	Informers informers.SharedInformerFactory
	// SecretClient reads single Secrets, where not all of them may be read: on nodes.
	SecretClient kubernetes.Interface
	// Address is where listeners listen; empty: all addresses.
	Address string
	// HTTPPort and HTTPSPort are those of Ingress. Default: 80 and 443.
	HTTPPort, HTTPSPort int
	// WriteStatus says that this process reports statuses: the servers of a cluster do.
	WriteStatus bool
	// GrantClient lets the group Nodes read the Secrets that are served, by a Role in
	// each of their namespaces; nil: nobody is let.
	GrantClient kubernetes.Interface
	Nodes       string
	// Passive serves nothing itself: another process does, or this is a server without a
	// node. Without WriteStatus nothing is built then.
	Passive bool
	// OnActive is told whether there is anything to serve; nil: nobody is. It must not block.
	OnActive func(active bool)
	// OnApplied is told whenever a configuration is in force, with the ports that could
	// not be opened; nil: nobody is.
	OnApplied func(taken map[int]error)
	// Taken says which ports the process that serves could not open, if this one is Passive.
	Taken func() map[int]error
	// Events gets what users must know about their objects; nil: nothing.
	Events record.EventRecorder
	// DrainTimeout is how long requests may go on when the process ends. Default: 10 s.
	DrainTimeout time.Duration
	// Listen opens sockets; nil: TCP.
	Listen func(ctx context.Context, l *l7.Listener) (net.Listener, error)
	// Mesh secures what goes to pods of a mesh; nil: there is none.
	Mesh Mesh
	// Journey is told what is in force and what was answered first, for node Node; nil:
	// nobody is.
	Journey journey.Recorder
	Node    string
	// Began is since when objects make journeys here: the first one may be older than the
	// process that was started because of it. Default: now.
	Began time.Time
	// Observers are told of each request.
	Observers []l7.Observer
	Log       *slog.Logger
}

func (c *Config) validate() error {
	if c.Informers == nil {
		return errors.New("gateway: Informers are needed")
	}
	if c.HTTPPort == 0 {
		c.HTTPPort = 80
	}
	if c.HTTPSPort == 0 {
		c.HTTPSPort = 443
	}
	for name, port := range map[string]int{"HTTPPort": c.HTTPPort, "HTTPSPort": c.HTTPSPort} {
		if port < 1 || port > 65535 {
			return fmt.Errorf("gateway: %s: %d is not a port", name, port)
		}
	}
	if c.HTTPPort == c.HTTPSPort {
		return fmt.Errorf("gateway: HTTPPort and HTTPSPort are both %d", c.HTTPPort)
	}
	if c.Began.IsZero() {
		c.Began = time.Now()
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 10 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// A Mesh knows which pods have a sidecar, and speaks mutual TLS with them.
type Mesh interface {
	// Secure sets the TLS of a cluster and marks the endpoints that it is for. Both are
	// new; endpoints have the metadata "namespace" and "pod".
	Secure(c *l7.Cluster, namespace, service string, port int32, endpoints []*l7.Endpoint)
}
