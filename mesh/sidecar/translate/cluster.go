package translate

import (
	"fmt"
	"math"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/telemetry"
)

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

func (s *State) cluster(m *cluster.Cluster) (*clusterEntry, error) {
	c := &l7.Cluster{ConnectTimeout: m.GetConnectTimeout().AsDuration(), Metadata: map[string]string{}}
	e := &clusterEntry{cluster: c}
	switch m.GetType() {
	case cluster.Cluster_EDS:
		if e.eds = m.GetEdsClusterConfig().GetServiceName(); e.eds == "" {
			e.eds = m.GetName()
		}
	case cluster.Cluster_ORIGINAL_DST:
		c.Kind = l7.ClusterOriginalDestination
	case cluster.Cluster_STATIC:
		if a := m.GetLoadAssignment(); a != nil {
			e.eds = "inline|" + m.GetName()
			s.endpoints[e.eds] = endpoints(a)
		}
	default:
		return nil, fmt.Errorf("discovery type %s is not supported", m.GetType())
	}
	switch m.GetLbPolicy() {
	case cluster.Cluster_LEAST_REQUEST:
		c.Balancing = l7.LeastRequest
	case cluster.Cluster_RANDOM:
		c.Balancing = l7.Random
	case cluster.Cluster_RING_HASH, cluster.Cluster_MAGLEV:
		c.Balancing = l7.RingHash
		c.MinimumRingSize = int(min(m.GetRingHashLbConfig().GetMinimumRingSize().GetValue(), 1<<20))
	}
	auto, err := protocol(c, m)
	if err != nil {
		return nil, err
	}
	for _, t := range m.GetCircuitBreakers().GetThresholds() {
		if t.GetPriority() == core.RoutingPriority_DEFAULT {
			c.Breaker = l7.CircuitBreaker{
				MaxConnections: bound(t.GetMaxConnections()), MaxPending: bound(t.GetMaxPendingRequests()),
				MaxRequests: bound(t.GetMaxRequests()), MaxRetries: bound(t.GetMaxRetries()),
			}
		}
	}
	c.Outlier = outliers(m.GetOutlierDetection())
	if err := s.secure(c, m); err != nil {
		return nil, err
	}
	if b := m.GetUpstreamBindConfig().GetSourceAddress(); b != nil {
		c.Metadata[Bind] = b.GetAddress()
	}
	f := m.GetMetadata().GetFilterMetadata()[mesh.MetadataIstio].GetFields()
	if list := f[mesh.MetadataServices].GetListValue().GetValues(); len(list) > 0 {
		svc := list[0].GetStructValue().GetFields()
		c.Metadata[telemetry.ClusterHost] = svc["host"].GetStringValue()
		c.Metadata[telemetry.ClusterName] = svc["name"].GetStringValue()
		c.Metadata[telemetry.ClusterNamespace] = svc["namespace"].GetStringValue()
	}
	if auto {
		e.twin = forHTTP(c)
	}
	return e, nil
}

// protocol sets what is spoken with endpoints; true: what the client speaks, or no
// HTTP at all.
func protocol(c *l7.Cluster, m *cluster.Cluster) (auto bool, err error) {
	body := m.GetTypedExtensionProtocolOptions()[httpOptions]
	if body == nil {
		return false, nil
	}
	o := &upstreams.HttpProtocolOptions{}
	if err := unmarshal(body, o); err != nil {
		return false, err
	}
	switch v := o.GetUpstreamProtocolOptions().(type) {
	case *upstreams.HttpProtocolOptions_ExplicitHttpConfig_:
		if v.ExplicitHttpConfig.GetHttp2ProtocolOptions() != nil {
			c.Protocol = l7.ProtocolHTTP2
		}
	case *upstreams.HttpProtocolOptions_UseDownstreamProtocolConfig:
		c.Protocol, auto = l7.ProtocolDownstream, true
	case *upstreams.HttpProtocolOptions_AutoConfig:
		c.Protocol = l7.ProtocolALPN
	}
	if h := o.GetCommonHttpProtocolOptions(); h != nil {
		c.IdleTimeout = h.GetIdleTimeout().AsDuration()
		c.MaxRequestsPerConnection = bound(h.GetMaxRequestsPerConnection())
	}
	return auto, nil
}

// forHTTP makes c the cluster for HTTP and returns its twin for TCP: in mutual TLS
// they say by ALPN which of them it is.
func forHTTP(c *l7.Cluster) *l7.Cluster {
	twin := *c
	http := func(t *l7.UpstreamTLS) *l7.UpstreamTLS {
		if t == nil || len(t.ALPN) == 0 || t.ALPN[0] != mesh.ALPNPeerExchange {
			return t
		}
		out := *t
		out.ALPN = []string{mesh.ALPNHTTP1}
		return &out
	}
	c.TLS = http(c.TLS)
	matches := make([]l7.TransportMatch, 0, len(c.TransportMatches))
	for _, m := range c.TransportMatches {
		m.TLS = http(m.TLS)
		matches = append(matches, m)
	}
	c.TransportMatches = matches
	return &twin
}

// bound is a limit; what is beyond counting is none.
func bound(v *wrapperspb.UInt32Value) int {
	if v == nil || v.GetValue() >= math.MaxInt32 {
		return 0
	}
	return int(v.GetValue())
}

func outliers(m *cluster.OutlierDetection) *l7.OutlierDetection {
	if m == nil {
		return nil
	}
	out := &l7.OutlierDetection{
		Interval: m.GetInterval().AsDuration(), BaseEjection: m.GetBaseEjectionTime().AsDuration(),
		MaxEjection: m.GetMaxEjectionTime().AsDuration(), MaxPercent: bound(m.GetMaxEjectionPercent()),
	}
	if enforced(m.GetEnforcingConsecutive_5Xx(), 100) {
		out.Consecutive5xx = 5
		if v := m.GetConsecutive_5Xx(); v != nil {
			out.Consecutive5xx = bound(v)
		}
	}
	if enforced(m.GetEnforcingConsecutiveGatewayFailure(), 0) {
		out.ConsecutiveGatewayErrors = 5
		if v := m.GetConsecutiveGatewayFailure(); v != nil {
			out.ConsecutiveGatewayErrors = bound(v)
		}
	}
	if out.MaxEjection == 0 {
		out.MaxEjection = max(300*time.Second, out.BaseEjection)
	}
	return out
}

func enforced(v *wrapperspb.UInt32Value, unset uint32) bool {
	if v == nil {
		return unset > 0
	}
	return v.GetValue() > 0
}

// texts are the strings of a struct.
func texts(s *structpb.Struct) map[string]string {
	out := map[string]string{}
	for k, v := range s.GetFields() {
		out[k] = v.GetStringValue()
	}
	return out
}
