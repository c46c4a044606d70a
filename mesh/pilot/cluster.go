package pilot

import (
	"math"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/periplus/periplus/mesh"
)

const (
	connectTimeout = 10 * time.Second
	httpOptions    = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
)

// A generator makes the configuration of one view.
type generator struct {
	world     *World
	namespace string
	labels    map[string]string
	// proxyless leaves out what gRPC clients do not know.
	proxyless bool
}

// clusters are those of all services, with their subsets, and the two that do not
// depend on services.
func (g *generator) clusters() resources {
	out := resources{}
	for _, s := range g.world.services {
		rule := g.world.rule(s.host, s.namespace, g.namespace)
		for _, p := range s.ports {
			c := g.cluster(s, p, "", trafficPolicy(rule, "", p.number))
			out.add(c.Name, c)
			if rule == nil {
				continue
			}
			for _, sub := range rule.Spec.GetSubsets() {
				c := g.cluster(s, p, sub.GetName(), trafficPolicy(rule, sub.GetName(), p.number))
				out.add(c.Name, c)
			}
		}
	}
	passthrough := &cluster.Cluster{
		Name: mesh.PassthroughCluster, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_ORIGINAL_DST},
		LbPolicy: cluster.Cluster_CLUSTER_PROVIDED, ConnectTimeout: durationpb.New(connectTimeout),
		TypedExtensionProtocolOptions: protocolOptions(protocolAuto, nil),
	}
	out.add(passthrough.Name, passthrough)
	out.add(mesh.BlackHoleCluster, &cluster.Cluster{
		Name: mesh.BlackHoleCluster, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}, ConnectTimeout: durationpb.New(connectTimeout),
	})
	return out
}

// cluster is one port of a service, or a subset of it.
func (g *generator) cluster(s *service, p *port, subset string, policy *networking.TrafficPolicy) *cluster.Cluster {
	name := mesh.ClusterName(mesh.Outbound, p.number, subset, s.host)
	c := &cluster.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig:     &cluster.Cluster_EdsClusterConfig{EdsConfig: ads(), ServiceName: name},
		ConnectTimeout:       durationpb.New(connectTimeout),
		LbPolicy:             cluster.Cluster_LEAST_REQUEST,
		Metadata:             serviceMetadata(s, subset),
	}
	if g.proxyless {
		c.LbPolicy = cluster.Cluster_ROUND_ROBIN
	}
	if s.headless && !g.proxyless {
		// The client has chosen a pod by its address.
		c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_ORIGINAL_DST}
		c.EdsClusterConfig, c.LbPolicy = nil, cluster.Cluster_CLUSTER_PROVIDED
	} else {
		balance(c, policy.GetLoadBalancer())
	}
	pool(c, policy.GetConnectionPool())
	c.OutlierDetection = outliers(policy.GetOutlierDetection())
	if g.proxyless {
		return c
	}
	c.TypedExtensionProtocolOptions = protocolOptions(p.protocol, policy.GetConnectionPool().GetHttp())
	g.secure(c, s, p, subset, policy.GetTls())
	return c
}

// secure says which endpoints are spoken to with TLS.
func (g *generator) secure(c *cluster.Cluster, s *service, p *port, subset string, t *networking.ClientTLSSettings) {
	if t != nil {
		switch t.GetMode() {
		case networking.ClientTLSSettings_DISABLE:
			return
		case networking.ClientTLSSettings_ISTIO_MUTUAL:
			c.TransportSocket = upstreamMutual(s, p.number, subset, p.protocol)
			return
		case networking.ClientTLSSettings_SIMPLE, networking.ClientTLSSettings_MUTUAL:
			sni := t.GetSni()
			if sni == "" {
				sni = s.host
			}
			c.TransportSocket = upstreamSimple(sni, t.GetSubjectAltNames(), t.GetInsecureSkipVerify().GetValue(), p.protocol)
			return
		}
	}
	if s.headless {
		// Original destinations have no metadata: mutual TLS if all of them can.
		list := g.world.endpoints[portKey{s.host, p.number}]
		for _, e := range list {
			if !g.world.mutual(s.namespace, e) {
				return
			}
		}
		if len(list) > 0 {
			c.TransportSocket = upstreamMutual(s, p.number, subset, p.protocol)
		}
		return
	}
	c.TransportSocketMatches = []*cluster.Cluster_TransportSocketMatch{
		{
			Name:            "tlsMode-istio",
			Match:           fields(map[string]*structpb.Value{mesh.MetadataTLSMode: text(mesh.TLSModeIstio)}),
			TransportSocket: upstreamMutual(s, p.number, subset, p.protocol),
		},
		{Name: "tlsMode-disabled", Match: &structpb.Struct{}, TransportSocket: &core.TransportSocket{Name: socketRaw}},
	}
}

func serviceMetadata(s *service, subset string) *core.Metadata {
	f := map[string]*structpb.Value{
		mesh.MetadataServices: structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(fields(map[string]*structpb.Value{
			"host": text(s.host), "name": text(s.name), "namespace": text(s.namespace),
		}))}}),
	}
	if subset != "" {
		f["subset"] = text(subset)
	}
	return metadata(mesh.MetadataIstio, f)
}

// balance sets the load balancing policy; least request if none is named.
func balance(c *cluster.Cluster, l *networking.LoadBalancerSettings) {
	switch l.GetSimple() {
	case networking.LoadBalancerSettings_RANDOM:
		c.LbPolicy = cluster.Cluster_RANDOM
	case networking.LoadBalancerSettings_ROUND_ROBIN:
		c.LbPolicy = cluster.Cluster_ROUND_ROBIN
	}
	h := l.GetConsistentHash()
	if h == nil {
		return
	}
	size := h.GetRingHash().GetMinimumRingSize()
	if size == 0 {
		size = h.GetMinimumRingSize() //nolint:staticcheck // deprecated, but still there
	}
	if size == 0 {
		size = 1024
	}
	c.LbPolicy = cluster.Cluster_RING_HASH
	c.LbConfig = &cluster.Cluster_RingHashLbConfig_{RingHashLbConfig: &cluster.Cluster_RingHashLbConfig{MinimumRingSize: wrapperspb.UInt64(size)}}
}

// pool sets bounds of connections and requests; without one there is none.
func pool(c *cluster.Cluster, p *networking.ConnectionPoolSettings) {
	bound := func(n int32) *wrapperspb.UInt32Value {
		if n <= 0 {
			return wrapperspb.UInt32(math.MaxUint32)
		}
		return wrapperspb.UInt32(uint32(n))
	}
	c.CircuitBreakers = &cluster.CircuitBreakers{Thresholds: []*cluster.CircuitBreakers_Thresholds{{
		MaxConnections:     bound(p.GetTcp().GetMaxConnections()),
		MaxPendingRequests: bound(p.GetHttp().GetHttp1MaxPendingRequests()),
		MaxRequests:        bound(p.GetHttp().GetHttp2MaxRequests()),
		MaxRetries:         bound(p.GetHttp().GetMaxRetries()),
	}}}
	if t := p.GetTcp().GetConnectTimeout(); t != nil {
		c.ConnectTimeout = durationpb.New(t.AsDuration())
	}
}

// protocolOptions say what is spoken with the endpoints.
func protocolOptions(p protocol, h *networking.ConnectionPoolSettings_HTTPSettings) map[string]*anypb.Any {
	if p == protocolTCP {
		return nil
	}
	o := &upstreams.HttpProtocolOptions{}
	explicit := func(e *upstreams.HttpProtocolOptions_ExplicitHttpConfig) {
		o.UpstreamProtocolOptions = &upstreams.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: e}
	}
	switch {
	case p == protocolHTTP2 || p == protocolHTTP && h.GetH2UpgradePolicy() == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE:
		explicit(&upstreams.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &upstreams.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &core.Http2ProtocolOptions{}}})
	case p == protocolAuto || h.GetUseClientProtocol():
		o.UpstreamProtocolOptions = &upstreams.HttpProtocolOptions_UseDownstreamProtocolConfig{UseDownstreamProtocolConfig: &upstreams.HttpProtocolOptions_UseDownstreamHttpConfig{
			HttpProtocolOptions: &core.Http1ProtocolOptions{}, Http2ProtocolOptions: &core.Http2ProtocolOptions{},
		}}
	default:
		explicit(&upstreams.HttpProtocolOptions_ExplicitHttpConfig{ProtocolConfig: &upstreams.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &core.Http1ProtocolOptions{}}})
	}
	if h.GetIdleTimeout() != nil || h.GetMaxRequestsPerConnection() > 0 {
		o.CommonHttpProtocolOptions = &core.HttpProtocolOptions{}
		if t := h.GetIdleTimeout(); t != nil {
			o.CommonHttpProtocolOptions.IdleTimeout = durationpb.New(t.AsDuration())
		}
		if n := h.GetMaxRequestsPerConnection(); n > 0 {
			o.CommonHttpProtocolOptions.MaxRequestsPerConnection = wrapperspb.UInt32(uint32(n))
		}
	}
	return map[string]*anypb.Any{httpOptions: pack(o)}
}

// outliers is outlier detection, which is off unless a rule has it.
func outliers(o *networking.OutlierDetection) *cluster.OutlierDetection {
	if o == nil {
		return nil
	}
	out := &cluster.OutlierDetection{
		Consecutive_5Xx:      u32(5),
		Interval:             durationpb.New(10 * time.Second),
		BaseEjectionTime:     durationpb.New(30 * time.Second),
		MaxEjectionPercent:   u32(10),
		EnforcingSuccessRate: u32(0), // off: it is not what people asked for
	}
	if v := o.GetConsecutive_5XxErrors(); v != nil {
		out.Consecutive_5Xx = v
		out.EnforcingConsecutive_5Xx = enforce(v.GetValue())
	}
	if v := o.GetConsecutiveGatewayErrors(); v != nil {
		out.ConsecutiveGatewayFailure = v
		out.EnforcingConsecutiveGatewayFailure = enforce(v.GetValue())
	}
	if v := o.GetInterval(); v != nil {
		out.Interval = durationpb.New(v.AsDuration())
	}
	if v := o.GetBaseEjectionTime(); v != nil {
		out.BaseEjectionTime = durationpb.New(v.AsDuration())
	}
	if v := o.GetMaxEjectionPercent(); v > 0 {
		out.MaxEjectionPercent = wrapperspb.UInt32(uint32(v))
	}
	return out
}

func enforce(n uint32) *wrapperspb.UInt32Value {
	if n > 0 {
		return u32(100)
	}
	return u32(0)
}
