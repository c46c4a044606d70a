package l7

import (
	"fmt"
	"time"
)

// A Cluster is a set of endpoints that do the same (envoy.config.cluster.v3.Cluster).
// A subset of a service is a cluster of its own.
type Cluster struct {
	// Kind says where the endpoints come from.
	Kind ClusterKind
	// Balancing chooses among the endpoints.
	Balancing Balancing
	// MinimumRingSize of RingHash: more points balance better. Zero: 256 for each host.
	MinimumRingSize int
	// Protocol spoken with the endpoints.
	Protocol Protocol
	// TLS towards the endpoints; nil: plain text.
	TLS *UpstreamTLS
	// TransportMatches choose another TLS for endpoints with certain metadata: the
	// first match counts. The mesh uses it to speak mTLS only with those that can.
	TransportMatches []TransportMatch
	// ConnectTimeout; zero: 10 s.
	ConnectTimeout time.Duration
	// IdleTimeout of unused connections; zero: 90 s.
	IdleTimeout time.Duration
	// MaxRequestsPerConnection; zero: no bound.
	MaxRequestsPerConnection int
	Breaker                  CircuitBreaker
	Outlier                  *OutlierDetection
	// ProxyProtocol sends a PROXY header, version 1 or 2, at the beginning of a connection; zero: none.
	ProxyProtocol int
	// Metadata are labels for filters and observers.
	Metadata map[string]string
}

// A ClusterKind says where a cluster's endpoints come from.
type ClusterKind int

// Kinds of clusters.
const (
	// ClusterStatic has the endpoints of the snapshot. Host names among them are
	// resolved when a connection is made.
	ClusterStatic ClusterKind = iota
	// ClusterOriginalDestination has one endpoint: where the connection was going
	// before it was redirected.
	ClusterOriginalDestination
)

// Balancing is a load balancing policy.
type Balancing int

// Load balancing policies.
const (
	RoundRobin Balancing = iota
	LeastRequest
	Random
	RingHash
)

// Protocol is a version of HTTP, on the upstream side.
type Protocol int

// Protocols.
const (
	// ProtocolHTTP1 is HTTP/1.1.
	ProtocolHTTP1 Protocol = iota
	// ProtocolHTTP2 is HTTP/2; without TLS by prior knowledge (h2c).
	ProtocolHTTP2
	// ProtocolDownstream is what the client speaks; gRPC needs HTTP/2 either way.
	ProtocolDownstream
	// ProtocolALPN offers both in TLS; without TLS it is HTTP/1.1.
	ProtocolALPN
)

// A TransportMatch is TLS for the endpoints that have all of Metadata.
type TransportMatch struct {
	Metadata map[string]string
	TLS      *UpstreamTLS // nil: plain text
}

// A CircuitBreaker bounds what a cluster is asked to do at once; zero: no bound.
// What exceeds it is answered with 503.
type CircuitBreaker struct {
	MaxConnections int
	// MaxPending is how many requests may wait for a connection.
	MaxPending int
	// MaxRequests is how many requests may be under way.
	MaxRequests int
	// MaxRetries is how many retries may be under way.
	MaxRetries int
}

// OutlierDetection takes endpoints that fail out of balancing for a while.
type OutlierDetection struct {
	// Consecutive5xx responses or connection errors in a row; zero: do not count.
	Consecutive5xx int
	// ConsecutiveGatewayErrors: 502, 503, 504 and connection errors; zero: do not count.
	ConsecutiveGatewayErrors int
	// Interval without an ejection after which the next one is shorter again. Zero: 10 s.
	Interval time.Duration
	// BaseEjection is how long the first ejection lasts; the n-th lasts n times as long.
	// Zero: 30 s.
	BaseEjection time.Duration
	// MaxEjection bounds one ejection. Zero: 300 s.
	MaxEjection time.Duration
	// MaxPercent of the endpoints may be ejected at once, but always one. Zero: 10.
	MaxPercent int
	// MinHealthPercent: below it nothing counts and all endpoints are used. Zero: off.
	MinHealthPercent int
}

// An Endpoint is one address of a cluster. It is identified by Address over snapshots.
type Endpoint struct {
	// Address is host:port; the host may be a name.
	Address string
	// Hostname is what HostOfEndpoint and TLS use; empty: the host of Address.
	Hostname string
	// Weight among those of one priority; zero: 1.
	Weight uint32
	// Locality is a label: region/zone/subzone.
	Locality string
	// Priority 0 is used as long as it has a healthy endpoint, then 1, …
	Priority int
	// Unhealthy endpoints are used only if there are no others.
	Health Health
	// Metadata are labels for filters and observers, and choose the TLS.
	Metadata map[string]string
}

// Health is what the configuration knows about an endpoint.
type Health int

// Health of endpoints.
const (
	Healthy Health = iota
	// Draining endpoints get no new requests as long as there are others.
	Draining
	Unhealthy
)

func (c *Cluster) validate() error {
	if c.TLS != nil && c.TLS.Insecure && len(c.TLS.SubjectAltNames) > 0 {
		return fmt.Errorf("TLS: SubjectAltNames cannot be verified with Insecure")
	}
	return nil
}
