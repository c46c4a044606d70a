package translate

import (
	"fmt"
	"maps"
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/ratelimit"
	"github.com/periplus/periplus/l7/filter/trace"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/telemetry"
)

// Types of resources.
const (
	TypeCluster  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	TypeEndpoint = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	TypeListener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	TypeRoute    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Types are all of them, in the order in which they are asked for.
var Types = []string{TypeCluster, TypeEndpoint, TypeListener, TypeRoute}

// Bind is the metadata of l7 clusters with the address that connections come from.
const Bind = "bind"

// Options are what snapshots have besides the configuration.
type Options struct {
	Certificates l7.CertificateSource
	Roots        l7.RootSource
	// Self is whom the proxy works for.
	Self   mesh.Workload
	NodeID string
	// Observers gives that of a direction.
	Observers func(inbound bool) *telemetry.Observer
}

// A State is all resources, translated. It is used by one goroutine.
type State struct {
	o     Options
	peers *telemetry.Peers
	trace *trace.Filter

	clusters  map[string]*clusterEntry
	endpoints map[string][]*l7.Endpoint
	listeners map[string]*listenerEntry
	routes    map[string]*l7.RouteConfiguration
	// limiters outlive routes: the tokens of a rate limit stay when a route changes.
	limiters map[string]*ratelimit.Limiter
}

type clusterEntry struct {
	cluster *l7.Cluster
	// twin is for plain TCP, where that has another application protocol.
	twin *l7.Cluster
	eds  string // the name of its endpoints; empty: it has none
}

type listenerEntry struct {
	listener *l7.Listener
	inline   map[string]*l7.RouteConfiguration // routes that came with it
	rds      []string                          // names of routes that it refers to
	tcp      []string                          // clusters that it hands bytes to
}

// New returns an empty state.
func New(o Options) *State {
	return &State{
		o: o, peers: &telemetry.Peers{}, trace: &trace.Filter{Context: true},
		clusters: map[string]*clusterEntry{}, endpoints: map[string][]*l7.Endpoint{}, listeners: map[string]*listenerEntry{},
		routes: map[string]*l7.RouteConfiguration{}, limiters: map[string]*ratelimit.Limiter{},
	}
}

// Put takes a resource in.
func (s *State) Put(typ, name string, body *anypb.Any) error {
	switch typ {
	case TypeCluster:
		m := &cluster.Cluster{}
		if err := unmarshal(body, m); err != nil {
			return err
		}
		e, err := s.cluster(m)
		if err != nil {
			return err
		}
		s.clusters[name] = e
	case TypeEndpoint:
		m := &endpoint.ClusterLoadAssignment{}
		if err := unmarshal(body, m); err != nil {
			return err
		}
		s.endpoints[name] = endpoints(m)
	case TypeListener:
		m := &listener.Listener{}
		if err := unmarshal(body, m); err != nil {
			return err
		}
		e, err := s.listener(m)
		if err != nil {
			return err
		}
		s.listeners[name] = e
	case TypeRoute:
		m := &route.RouteConfiguration{}
		if err := unmarshal(body, m); err != nil {
			return err
		}
		r, err := s.routeConfiguration(m)
		if err != nil {
			return err
		}
		s.routes[name] = r
	default:
		return fmt.Errorf("type %s is not known", typ)
	}
	return nil
}

// Remove takes a resource out.
func (s *State) Remove(typ, name string) {
	switch typ {
	case TypeCluster:
		delete(s.clusters, name)
	case TypeEndpoint:
		delete(s.endpoints, name)
	case TypeListener:
		delete(s.listeners, name)
	case TypeRoute:
		delete(s.routes, name)
	}
}

// Has reports whether there is any resource of a type.
func (s *State) Has(typ string) bool {
	switch typ {
	case TypeCluster:
		return len(s.clusters) > 0
	case TypeListener:
		return len(s.listeners) > 0
	}
	return false
}

// Wanted are the names of endpoints that clusters refer to, or of routes that
// listeners refer to, in order.
func (s *State) Wanted(typ string) []string {
	var out []string
	switch typ {
	case TypeEndpoint:
		for _, c := range s.clusters {
			if c.eds != "" {
				out = append(out, c.eds)
			}
		}
	case TypeRoute:
		for _, l := range s.listeners {
			out = append(out, l.rds...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Snapshot is the configuration as it is now.
func (s *State) Snapshot() *l7.Snapshot {
	out := &l7.Snapshot{
		Routes:   make(map[string]*l7.RouteConfiguration, len(s.routes)),
		Clusters: make(map[string]*l7.Cluster, len(s.clusters)), Endpoints: make(map[string][]*l7.Endpoint, len(s.endpoints)),
	}
	for name, c := range s.clusters {
		out.Clusters[name] = c.cluster
		if c.eds != "" {
			out.Endpoints[name] = s.endpoints[c.eds]
		}
	}
	maps.Copy(out.Routes, s.routes)
	for _, l := range s.listeners {
		out.Listeners = append(out.Listeners, l.listener)
		maps.Copy(out.Routes, l.inline)
		for _, name := range l.tcp {
			c := s.clusters[name]
			if c == nil {
				continue
			}
			twin := telemetry.TCPPrefix + name
			if out.Clusters[twin] = c.cluster; c.twin != nil {
				out.Clusters[twin] = c.twin
			}
			if c.eds != "" {
				out.Endpoints[twin] = s.endpoints[c.eds]
			}
		}
	}
	return out
}

func unmarshal(body *anypb.Any, into proto.Message) error {
	if body == nil {
		return fmt.Errorf("resource is empty")
	}
	if want := "type.googleapis.com/" + string(into.ProtoReflect().Descriptor().FullName()); body.GetTypeUrl() != want {
		return fmt.Errorf("resource is a %s, must be a %s", body.GetTypeUrl(), want)
	}
	return proto.Unmarshal(body.GetValue(), into)
}
