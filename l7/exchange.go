package l7

import (
	"context"
	"crypto/tls"
	"io"
	"net/netip"
	"strings"
	"time"
)

// A Connection is one from a client.
type Connection struct {
	Listener *Listener
	Chain    *FilterChain
	// Remote and Local are the ends of the socket, or what a PROXY header said.
	Remote, Local netip.AddrPort
	// Destination is where the client meant to go: Local, or what it was before the
	// connection was redirected.
	Destination netip.AddrPort
	// TLS is the state after the handshake; nil: plain text.
	TLS  *tls.ConnectionState
	Peer *Peer
	// ServerName is SNI, also where TLS is passed through.
	ServerName string
	// Protocol is "HTTP/1.1", "HTTP/2" or "tcp".
	Protocol string

	Opened   time.Time
	Duration time.Duration // when it has ended

	// Of a TCP proxy, when it has ended.
	Cluster       *Cluster
	ClusterName   string
	Endpoint      *Endpoint
	UpstreamPeer  *Peer
	BytesReceived int64 // from the client
	BytesSent     int64 // to the client
	Flags         Flag
	Details       string
}

// An Exchange is one request and its response. It is reused: nobody keeps it, nor
// its headers, after the request has ended. Strings may be kept.
type Exchange struct {
	Connection *Connection
	Request    Request
	Response   Response

	// Client is the address of the client as far as it is known: the connection's
	// Remote, or what trusted proxies say.
	Client netip.Addr

	// What was chosen; nil before.
	VirtualHost *VirtualHost
	Route       *Route
	Cluster     *Cluster
	ClusterName string
	Endpoint    *Endpoint
	// UpstreamPeer is the endpoint's certificate; nil without mTLS.
	UpstreamPeer *Peer

	Start time.Time
	// Duration and the following are complete when the request has ended.
	Duration time.Duration
	// UpstreamTime is from the first byte sent to an endpoint to the first one received.
	UpstreamTime  time.Duration
	Attempts      int   // tries; 0 for local replies
	BytesReceived int64 // of the request's body
	BytesSent     int64 // of the response's body
	Flags         Flag
	Details       string // why, for flags: the reason of a local reply

	context func() context.Context
	values  []value
}

type value struct{ key, value any }

// Context ends when the client has gone or the engine stops.
func (x *Exchange) Context() context.Context {
	if x.context == nil {
		return context.Background()
	}
	return x.context()
}

// Reset prepares x for the next request on a connection; for engines.
func (x *Exchange) Reset(c *Connection, ctx func() context.Context) {
	request, response := x.Request.Header[:0], x.Response.Header[:0]
	clear(x.values)
	*x = Exchange{Connection: c, context: ctx, values: x.values[:0]}
	x.Request.Header, x.Response.Header = request, response
}

// Set keeps a value for a filter's later calls; key is of a type of its own.
func (x *Exchange) Set(key, v any) {
	for i := range x.values {
		if x.values[i].key == key {
			x.values[i].value = v
			return
		}
	}
	x.values = append(x.values, value{key, v})
}

// Value returns what was Set; nil: nothing.
func (x *Exchange) Value(key any) any {
	for i := range x.values {
		if x.values[i].key == key {
			return x.values[i].value
		}
	}
	return nil
}

// A Request is the client's message.
type Request struct {
	Method string
	// Scheme is "http" or "https".
	Scheme string
	// Authority is the Host header, or :authority. The header has no Host.
	Authority string
	// Path is the request target: path and query, "*" for OPTIONS *.
	Path string
	// Proto is "HTTP/1.0", "HTTP/1.1" or "HTTP/2".
	Proto  string
	Header Header
	// ContentLength of the body: -1 unknown.
	ContentLength int64
	// Body is nil for none. A filter that replaces it by one of another length also
	// sets ContentLength.
	Body io.Reader
	// Trailer is complete when Body has been read to its end.
	Trailer Header
	// Upgrade is the protocol that the client wants to switch to, in lower case; empty: none.
	Upgrade string
}

// PathOnly returns the path without the query.
func (r *Request) PathOnly() string {
	p, _, _ := strings.Cut(r.Path, "?")
	return p
}

// RawQuery returns the query without its question mark.
func (r *Request) RawQuery() string {
	_, q, _ := strings.Cut(r.Path, "?")
	return q
}

// Host returns Authority without its port, in the letters of the client.
func (r *Request) Host() string {
	return HostOnly(r.Authority)
}

// HostOnly removes the port from an authority, and keeps the brackets of IPv6.
func HostOnly(authority string) string {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.IndexByte(authority[i:], ']') >= 0 {
		return authority
	}
	return authority[:i]
}

// GRPC reports whether the request is gRPC.
func (r *Request) GRPC() bool {
	t := r.Header.Get("content-type")
	const grpc = "application/grpc"
	return strings.HasPrefix(t, grpc) && (len(t) == len(grpc) || t[len(grpc)] == '+' || t[len(grpc)] == ';')
}

// A Response is the endpoint's message, or the proxy's own.
type Response struct {
	Status int
	Header Header
	// ContentLength of the body: -1 unknown.
	ContentLength int64
	// Body is nil for none. A filter that replaces it also sets ContentLength.
	Body io.Reader
	// Trailer is complete when Body has been read to its end.
	Trailer Header
	// Local says that the proxy made it.
	Local bool
}

// A Flag says why a request ended as it did, with Envoy's letters.
type Flag uint32

// Flags.
const (
	FlagNoRoute              Flag = 1 << iota // NR
	FlagNoHealthy                             // UH: no endpoint
	FlagConnectFailure                        // UF: the endpoint could not be reached
	FlagOverflow                              // UO: circuit breaker
	FlagUpstreamReset                         // UR: the endpoint broke the connection
	FlagUpstreamTimeout                       // UT
	FlagRetryLimit                            // URX: all tries failed
	FlagDownstreamDisconnect                  // DC: the client has gone
	FlagDownstreamProtocol                    // DPE: the client's bytes are no HTTP
	FlagUpstreamProtocol                      // UPE
	FlagRateLimited                           // RL
	FlagDenied                                // UAEX: an authorization filter said no
	FlagFault                                 // FI: fault injected
	FlagDelay                                 // DI: delay injected
	FlagNoCluster                             // NC
	FlagIdleTimeout                           // SI: no byte moved for too long
)

var flagNames = []string{"NR", "UH", "UF", "UO", "UR", "UT", "URX", "DC", "DPE", "UPE", "RL", "UAEX", "FI", "DI", "NC", "SI"}

// String is a list of letters, "-" for none.
func (f Flag) String() string {
	if f == 0 {
		return "-"
	}
	var b strings.Builder
	for i, name := range flagNames {
		if f&(1<<i) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
	}
	return b.String()
}
