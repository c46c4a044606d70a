package pilot

import (
	"maps"
	"slices"
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpinspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	originaldst "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	tcpproxy "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

// Names of listeners.
const (
	virtualOutbound = "virtualOutbound"
	virtualInbound  = "virtualInbound"
	anyAddress      = "0.0.0.0"
)

// outbound is all that proxies of one view share.
func (g *generator) outbound() (clusters, listeners, routes resources) {
	clusters = g.clusters()
	listeners, routes = resources{}, resources{}
	// HTTP listeners are shared by all services with the same port; others have one
	// for each address.
	http := map[int][]*service{}
	for _, s := range g.world.services {
		for _, p := range s.ports {
			if p.protocol.http() {
				http[p.number] = append(http[p.number], s)
				continue
			}
			for _, address := range g.addresses(s, p) {
				name := address + "_" + strconv.Itoa(p.number)
				if listeners[name] != nil {
					continue // another service has the address already
				}
				listeners.add(name, g.tcpListener(name, address, s, p))
			}
			if p.protocol == protocolAuto {
				r := g.sniffedRoutes(s, p)
				routes.add(r.Name, r)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(http)) {
		name := anyAddress + "_" + strconv.Itoa(number)
		listeners.add(name, httpListener(name, number))
		r := g.portRoutes(number, http[number])
		routes.add(r.Name, r)
	}
	listeners.add(virtualOutbound, &listenerv3.Listener{
		Name: virtualOutbound, Address: socket(anyAddress, mesh.OutboundPort),
		UseOriginalDst: yes(true), TrafficDirection: core.TrafficDirection_OUTBOUND,
		ListenerFilters:    []*listenerv3.ListenerFilter{listenerFilter("envoy.filters.listener.original_dst", &originaldst.OriginalDst{})},
		FilterChains:       nil,
		DefaultFilterChain: &listenerv3.FilterChain{Name: mesh.PassthroughCluster, Filters: []*listenerv3.Filter{tcpFilter(mesh.PassthroughCluster, nil)}},
	})
	return clusters, listeners, routes
}

// addresses are where a client may connect to for a service: its cluster IPs, or the
// pods of a headless one.
func (g *generator) addresses(s *service, p *port) []string {
	if !s.headless {
		return s.addresses
	}
	var out []string
	for _, e := range g.world.endpoints[portKey{s.host, p.number}] {
		if e.port == p.number { // else the client cannot mean the Service's port
			out = append(out, e.address)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func outboundListener(name, address string, number int) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: name, Address: socket(address, number), BindToPort: yes(false), TrafficDirection: core.TrafficDirection_OUTBOUND,
		ContinueOnListenerFiltersTimeout: true,
	}
}

func httpListener(name string, number int) *listenerv3.Listener {
	l := outboundListener(name, anyAddress, number)
	// What is not HTTP goes where it wanted to go.
	l.ListenerFilters = []*listenerv3.ListenerFilter{sniff()}
	l.ListenerFiltersTimeout = durationpb.New(0)
	l.FilterChains = []*listenerv3.FilterChain{{
		Name:             name,
		FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: "raw_buffer", ApplicationProtocols: plainHTTP},
		Filters:          []*listenerv3.Filter{httpFilterChain("outbound_"+name, strconv.Itoa(number), nil, nil)},
	}}
	l.DefaultFilterChain = &listenerv3.FilterChain{Name: mesh.PassthroughCluster, Filters: []*listenerv3.Filter{tcpFilter(mesh.PassthroughCluster, nil)}}
	return l
}

// plainHTTP is what the first bytes of HTTP without TLS are called.
var plainHTTP = []string{"http/1.0", "http/1.1", "h2c"}

func sniff() *listenerv3.ListenerFilter {
	return listenerFilter("envoy.filters.listener.http_inspector", &httpinspector.HttpInspector{})
}

func listenerFilter(name string, m proto.Message) *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: name, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: pack(m)}}
}

// tcpListener is one address of a port that is not known to be HTTP.
func (g *generator) tcpListener(name, address string, s *service, p *port) *listenerv3.Listener {
	l := outboundListener(name, address, p.number)
	cluster, weighted := g.tcpRoute(s, p)
	tcp := &listenerv3.FilterChain{Name: name, Filters: []*listenerv3.Filter{tcpFilter(cluster, weighted)}}
	if p.protocol != protocolAuto {
		l.FilterChains = []*listenerv3.FilterChain{tcp}
		return l
	}
	l.ListenerFilters = []*listenerv3.ListenerFilter{sniff()}
	l.FilterChains = []*listenerv3.FilterChain{{
		Name:             name + "_http",
		FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: "raw_buffer", ApplicationProtocols: plainHTTP},
		Filters:          []*listenerv3.Filter{httpFilterChain("outbound_"+name, sniffedName(s, p), nil, nil)},
	}}
	l.DefaultFilterChain = tcp
	return l
}

// tcpRoute is where connections for a port go: what a VirtualService says, or the service.
func (g *generator) tcpRoute(s *service, p *port) (string, []*networking.RouteDestination) {
	if v := g.virtualService(s.host); v != nil {
		for _, r := range v.Spec.GetTcp() {
			if tcpMatches(r.GetMatch(), p.number, g) {
				return g.tcpDestinations(v, r.GetRoute(), p)
			}
		}
	}
	return mesh.ClusterName(mesh.Outbound, p.number, "", s.host), nil
}

func (g *generator) tcpDestinations(v *config.VirtualService, list []*networking.RouteDestination, p *port) (string, []*networking.RouteDestination) {
	named := make([]*networking.RouteDestination, 0, len(list))
	for _, d := range list {
		named = append(named, &networking.RouteDestination{
			Destination: &networking.Destination{Host: g.destination(v, d.GetDestination(), p.number)}, Weight: d.GetWeight(),
		})
	}
	if len(named) == 1 {
		return named[0].GetDestination().GetHost(), nil
	}
	return "", named
}

func tcpMatches(list []*networking.L4MatchAttributes, port int, g *generator) bool {
	for _, m := range list {
		if (m.GetPort() == 0 || int(m.GetPort()) == port) && subsetOf(m.GetSourceLabels(), g.labels) &&
			(m.GetSourceNamespace() == "" || m.GetSourceNamespace() == g.namespace) && forMesh(m.GetGateways()) {
			return true
		}
	}
	return len(list) == 0
}

// tcpFilter proxies to a cluster, or to several by weight; then Host of a destination
// is the name of a cluster.
func tcpFilter(cluster string, weighted []*networking.RouteDestination) *listenerv3.Filter {
	t := &tcpproxy.TcpProxy{StatPrefix: cluster, ClusterSpecifier: &tcpproxy.TcpProxy_Cluster{Cluster: cluster}}
	if len(weighted) > 0 {
		w := &tcpproxy.TcpProxy_WeightedCluster{}
		for _, d := range weighted {
			if d.GetWeight() > 0 {
				w.Clusters = append(w.Clusters, &tcpproxy.TcpProxy_WeightedCluster_ClusterWeight{Name: d.GetDestination().GetHost(), Weight: uint32(d.GetWeight())})
			}
		}
		t.StatPrefix = "weighted"
		t.ClusterSpecifier = &tcpproxy.TcpProxy_WeightedClusters{WeightedClusters: w}
	}
	return networkFilter("envoy.filters.network.tcp_proxy", t)
}

func networkFilter(name string, m proto.Message) *listenerv3.Filter {
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(m)}}
}
