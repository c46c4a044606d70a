package l7

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// A Listener accepts connections at one address (envoy.config.listener.v3.Listener).
type Listener struct {
	// Name identifies the listener over snapshots: one with the same name and
	// address keeps its socket.
	Name string
	// Address is host:port. The engine opens it with Config.Listen.
	Address string
	// Virtual listeners open no socket: a listener with HandOff gives them the
	// connections whose original destination is Address.
	Virtual bool
	// HandOff gives a connection to the virtual listener of its original destination:
	// first one with the same address, then 0.0.0.0 with the same port (xDS:
	// use_original_dst). Without such a listener this one serves it.
	HandOff bool
	// Chains are tried in the order of xDS: the most specific match of destination
	// port, address, server name, transport protocol, application protocol, source.
	Chains []*FilterChain
	// Default serves a connection that no chain matches; without it, it is closed.
	Default *FilterChain
	// ProxyProtocol expects a PROXY header, version 1 or 2, before all else, and
	// believes it. Only for listeners that nobody else can reach.
	ProxyProtocol bool
	// InspectTimeout bounds the wait for the first bytes of a connection whose chain
	// depends on them. Zero: 15 s. After it a plain-text chain is looked for, which
	// lets protocols through in which the server speaks first.
	InspectTimeout time.Duration
	// Direction is a label for observers: "inbound", "outbound", "gateway".
	Direction string
	// Metadata are labels for filters and observers.
	Metadata map[string]string
}

// A FilterChain serves the connections that it matches.
type FilterChain struct {
	// Name is for logs and status.
	Name  string
	Match ChainMatch
	// TLS terminates TLS; nil: plain text, or TLS that is passed through.
	TLS *DownstreamTLS
	// Connection filters run once for each connection, after TLS.
	Connection []ConnectionFilter
	// Exactly one of these.
	HTTP *HTTPConnectionManager
	TCP  *TCPProxy
}

// A ChainMatch matches a connection if each field that is set does.
type ChainMatch struct {
	// DestinationPort and Destinations are compared with the original destination.
	DestinationPort uint16
	Destinations    []netip.Prefix
	// ServerNames are compared with SNI: "a.example", "*.example" (any number of labels).
	ServerNames []string
	// Transport is "tls", "raw_buffer" or empty for both.
	Transport string
	// ApplicationProtocols are compared with ALPN, or with "http/1.1" and "h2c" for
	// plain text that looks so.
	ApplicationProtocols []string
	Sources              []netip.Prefix
}

// A Codec says which version of HTTP a connection speaks.
type Codec int

// Codecs.
const (
	// CodecAuto goes by ALPN, and by the first bytes where there is none.
	CodecAuto Codec = iota
	CodecHTTP1
	CodecHTTP2
)

// An HTTPConnectionManager serves HTTP (envoy.extensions.filters.network.http_connection_manager.v3).
type HTTPConnectionManager struct {
	Codec Codec
	// RouteConfig names a route configuration of the snapshot.
	RouteConfig string
	// Filters run before the route is chosen, in this order; those of the virtual
	// host, the route and the weighted cluster run after them.
	Filters []Filter
	// Observers are told of each request when it has ended.
	Observers []Observer

	// ForwardedFor says what becomes of X-Forwarded-For, -Proto, -Host and -Port.
	ForwardedFor ForwardedFor
	// TrustedProxies is how many entries of X-Forwarded-For, from the right, are
	// believed with ForwardedForAppend.
	TrustedProxies int
	// ServerHeader replaces the Server header of responses; empty: it is passed on.
	ServerHeader string

	// MaxHeaderBytes bounds a request's head. Zero: 64 KiB. Beyond it: 431.
	MaxHeaderBytes int
	// IdleTimeout closes a connection without a request. Zero: 1 h.
	IdleTimeout time.Duration
	// HeaderTimeout bounds the time from a request's first byte to the end of its
	// head. Zero: 30 s. After it: 408.
	HeaderTimeout time.Duration
	// StreamIdleTimeout ends a request in which no byte moves. Zero: 5 min; negative: none.
	StreamIdleTimeout time.Duration
	// MaxStreams is the number of concurrent HTTP/2 streams of one connection. Zero: 250.
	MaxStreams uint32
	// Upgrades are the protocols that Upgrade may switch to: "websocket". CONNECT
	// requests are served if it lists "CONNECT".
	Upgrades []string
	// NormalizePath resolves "." and ".." (RFC 3986 §5.2.4) and escapes of unreserved
	// characters (§6.2.2.2) before anything is matched; without it paths are taken and
	// passed on as they came. MergeSlashes makes one slash of several.
	NormalizePath bool
	MergeSlashes  bool
}

// ForwardedFor says what becomes of the X-Forwarded headers.
type ForwardedFor int

// What becomes of X-Forwarded headers.
const (
	// ForwardedForKeep leaves them as they came: inside of a mesh.
	ForwardedForKeep ForwardedFor = iota
	// ForwardedForReplace takes the client's address from the connection and
	// discards what the client said: at the edge.
	ForwardedForReplace
	// ForwardedForAppend believes TrustedProxies proxies in front of this one and
	// appends the peer's address.
	ForwardedForAppend
)

// A TCPProxy passes bytes (envoy.extensions.filters.network.tcp_proxy.v3).
type TCPProxy struct {
	// Cluster, or Weighted.
	Cluster  string
	Weighted []WeightedCluster
	// IdleTimeout closes a connection on which no byte moves either way. Zero: 1 h; negative: never.
	IdleTimeout time.Duration
	// ConnectAttempts is how many endpoints are tried. Zero: 1.
	ConnectAttempts int
	// Observers are told of each connection when it has ended.
	Observers []ConnectionObserver
}

func (l *Listener) validate() error {
	var errs []error
	if l.Address == "" {
		errs = append(errs, fmt.Errorf("listener %q: address %w", l.Name, ErrEmpty))
	}
	chains := l.Chains
	if l.Default != nil {
		chains = append(slices.Clip(chains), l.Default)
	}
	for i, c := range chains {
		if (c.HTTP == nil) == (c.TCP == nil) {
			errs = append(errs, fmt.Errorf("listener %q: filter chain %d (%q) must have one of HTTP and TCP", l.Name, i, c.Name))
		}
		if c.TLS != nil && c.TLS.Certificates == nil {
			errs = append(errs, fmt.Errorf("listener %q: filter chain %d (%q): certificate %w", l.Name, i, c.Name, ErrEmpty))
		}
	}
	return errors.Join(errs...)
}
