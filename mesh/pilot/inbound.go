package pilot

import (
	"slices"
	"strconv"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	originaldst "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	tlsinspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	netrbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/periplus/periplus/mesh"
)

// ALPN by which a client of the mesh says what is inside of its TLS.
var (
	meshHTTP = []string{mesh.ALPNHTTP10, mesh.ALPNHTTP1, mesh.ALPNHTTP2}
	meshTCP  = []string{mesh.ALPNPeerExchange, mesh.ALPNTCP}
	meshAny  = append(slices.Clone(meshTCP), meshHTTP...)
)

// An inboundPort is one port of a pod that some Service leads to.
type inboundPort struct {
	number   int
	protocol protocol
	service  *service
}

// inboundPorts are those of a proxy's pod, by number.
func (w *World) inboundPorts(p *proxy) []inboundPort {
	var out []inboundPort
	for _, s := range w.selecting(p.namespace, p.labels) {
		for _, sp := range s.ports {
			n := p.target(sp.target)
			if n == 0 || slices.ContainsFunc(out, func(i inboundPort) bool { return i.number == n }) {
				continue
			}
			out = append(out, inboundPort{number: n, protocol: sp.protocol, service: s})
		}
	}
	slices.SortFunc(out, func(a, b inboundPort) int { return a.number - b.number })
	return out
}

// inboundClusters lead to the application, wherever it listens.
func (w *World) inboundClusters(p *proxy) resources {
	out := resources{}
	add := func(name string, proto protocol, s *service) {
		c := &cluster.Cluster{
			Name: name, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_ORIGINAL_DST},
			LbPolicy: cluster.Cluster_CLUSTER_PROVIDED, ConnectTimeout: durationpb.New(connectTimeout),
			// By this address the redirect rules know what comes from the proxy.
			UpstreamBindConfig:            &core.BindConfig{SourceAddress: &core.SocketAddress{Address: mesh.PassthroughAddress, PortSpecifier: &core.SocketAddress_PortValue{}}},
			TypedExtensionProtocolOptions: protocolOptions(proto, nil),
		}
		if s != nil {
			c.Metadata = serviceMetadata(s, "")
		}
		out.add(name, c)
	}
	for _, i := range w.inboundPorts(p) {
		add(mesh.ClusterName(mesh.Inbound, i.number, "", ""), i.protocol, i.service)
	}
	add(mesh.InboundPassthroughCluster, protocolAuto, nil)
	return out
}

// inbound is the listener for what is sent to the application.
func (w *World) inbound(p *proxy) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name: virtualInbound, Address: socket(anyAddress, mesh.InboundPort), TrafficDirection: core.TrafficDirection_INBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{
			listenerFilter("envoy.filters.listener.original_dst", &originaldst.OriginalDst{}),
			listenerFilter("envoy.filters.listener.tls_inspector", &tlsinspector.TlsInspector{}), sniff(),
		},
		ListenerFiltersTimeout: durationpb.New(0), ContinueOnListenerFiltersTimeout: true,
	}
	modes := w.modesOf(p.namespace, p.labels)
	b := &inboundBuilder{
		http: w.authorizationOf(p.namespace, p.labels, false), tcp: w.authorizationOf(p.namespace, p.labels, true),
	}
	ports := w.inboundPorts(p)
	for _, i := range ports {
		name := anyAddress + "_" + strconv.Itoa(i.number)
		l.FilterChains = append(l.FilterChains, b.chains(name, i.number, i.protocol, modes.of(i.number), mesh.ClusterName(mesh.Inbound, i.number, "", ""))...)
	}
	// Ports with a mode of their own that no Service leads to.
	for _, n := range slices.Sorted(keysOf(modes.ports)) {
		if !slices.ContainsFunc(ports, func(i inboundPort) bool { return i.number == n }) {
			l.FilterChains = append(l.FilterChains, b.chains(anyAddress+"_"+strconv.Itoa(n), n, protocolAuto, modes.of(n), mesh.InboundPassthroughCluster)...)
		}
	}
	l.FilterChains = append(l.FilterChains, b.chains(virtualInbound, 0, protocolAuto, modes.all, mesh.InboundPassthroughCluster)...)
	return l
}

func keysOf(m map[int]mode) func(func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// An inboundBuilder makes filter chains; it holds the policies of the workload.
type inboundBuilder struct{ http, tcp authorization }

// chains are those of one port; of port 0 for all others.
func (b *inboundBuilder) chains(name string, number int, proto protocol, m mode, to string) []*listenerv3.FilterChain {
	var out []*listenerv3.FilterChain
	match := func(transport string, alpn []string) *listenerv3.FilterChainMatch {
		fm := &listenerv3.FilterChainMatch{TransportProtocol: transport, ApplicationProtocols: alpn}
		if number != 0 {
			fm.DestinationPort = u32(number)
		}
		return fm
	}
	add := func(suffix string, fm *listenerv3.FilterChainMatch, secure bool, filters []*listenerv3.Filter) {
		c := &listenerv3.FilterChain{Name: name + suffix, FilterChainMatch: fm, Filters: filters}
		if secure {
			c.TransportSocket = downstreamMutual()
		}
		out = append(out, c)
	}
	http, tcp := b.httpFilters(name, to), b.tcpFilters(to)
	if m != disable {
		switch {
		case proto.http():
			alpn := meshAny
			if m == strict {
				alpn = nil
			}
			add("", match("tls", alpn), true, http)
		case proto == protocolTCP:
			alpn := meshAny
			if m == strict {
				alpn = nil
			}
			add("", match("tls", alpn), true, tcp)
		default:
			add("_http", match("tls", meshHTTP), true, http)
			add("_tcp", match("tls", meshTCP), true, tcp)
		}
	}
	if m == strict {
		// Plain text of this port must not be served by the chains for other ports.
		if number != 0 {
			add("_refused", match("raw_buffer", nil), false, []*listenerv3.Filter{tcpFilter(mesh.BlackHoleCluster, nil)})
			if proto == protocolAuto {
				add("_refused_tls", match("tls", nil), false, []*listenerv3.Filter{tcpFilter(mesh.BlackHoleCluster, nil)})
			}
		}
		return out
	}
	// TLS that is the application's own.
	add("_passthrough", match("tls", nil), false, tcp)
	switch {
	case proto.http():
		add("_plain", match("raw_buffer", nil), false, http)
	case proto == protocolTCP:
		add("_plain", match("raw_buffer", nil), false, tcp)
	default:
		add("_plain_http", match("raw_buffer", plainHTTP), false, http)
		add("_plain", match("raw_buffer", nil), false, tcp)
	}
	return out
}

func (b *inboundBuilder) httpFilters(name, to string) []*listenerv3.Filter {
	r := forward("default", to)
	routes := &routev3.RouteConfiguration{
		Name: to, ValidateClusters: yes(false),
		VirtualHosts: []*routev3.VirtualHost{{Name: "inbound|http|" + name, Domains: []string{"*"}, Routes: []*routev3.Route{r}}},
	}
	var first []*hcm.HttpFilter
	for _, rules := range b.http {
		first = append(first, httpFilter(filterRBAC, &httprbac.RBAC{Rules: rules}))
	}
	return []*listenerv3.Filter{httpFilterChain("inbound_"+name, "", routes, first)}
}

func (b *inboundBuilder) tcpFilters(to string) []*listenerv3.Filter {
	var out []*listenerv3.Filter
	for _, rules := range b.tcp {
		out = append(out, networkFilter("envoy.filters.network.rbac", &netrbac.RBAC{Rules: rules, StatPrefix: "tcp."}))
	}
	return append(out, tcpFilter(to, nil))
}
