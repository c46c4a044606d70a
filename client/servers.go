package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
)

// serverName is a name that every API server's certificate has.
const serverName = "kubernetes"

// Servers are the API servers of a cluster, of which one is enough. Connections go
// to the one that answered last; when it does not answer, to the next. It is a
// load balancer without a port: the dialer of Config.
type Servers struct {
	// attempt bounds one try to connect.
	attempt time.Duration

	mu        sync.Mutex // guards what follows
	addresses []string   // host:port; the first is tried first
	open      map[*serverConn]bool
}

// NewServers returns the servers at these addresses (host:port).
func NewServers(addresses ...string) *Servers {
	return &Servers{attempt: 3 * time.Second, addresses: addresses, open: map[*serverConn]bool{}}
}

// List returns the addresses, the preferred one first.
func (s *Servers) List() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.addresses)
}

// Set replaces the addresses and reports whether that changed anything. An empty
// list is ignored: it would leave no way back.
func (s *Servers) Set(addresses []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(addresses) == 0 {
		return false
	}
	var kept []string
	for _, a := range s.addresses {
		if slices.Contains(addresses, a) {
			kept = append(kept, a)
		}
	}
	for _, a := range addresses {
		if !slices.Contains(kept, a) {
			kept = append(kept, a)
		}
	}
	if slices.Equal(kept, s.addresses) {
		return false
	}
	s.addresses = kept
	return true
}

// Dial connects to the first server that answers.
func (s *Servers) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	// A dead peer is noticed by the kernel, which wakes nobody up meanwhile.
	dialer := net.Dialer{Timeout: s.attempt, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	var errs []error
	for _, address := range s.List() {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			return s.connected(address, c), nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("no API server can be reached: %w", errors.Join(errs...))
}

func (s *Servers) connected(address string, c net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.addresses, address); i > 0 {
		s.addresses = slices.Concat([]string{address}, s.addresses[:i], s.addresses[i+1:])
	}
	out := &serverConn{Conn: c, servers: s}
	s.open[out] = true
	return out
}

// CloseAll ends all connections: later ones show the new client certificate.
func (s *Servers) CloseAll() {
	s.mu.Lock()
	var all []*serverConn
	for c := range s.open {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

type serverConn struct {
	net.Conn
	servers *Servers
}

func (c *serverConn) Close() error {
	c.servers.mu.Lock()
	delete(c.servers.open, c)
	c.servers.mu.Unlock()
	return c.Conn.Close()
}

// Transport returns a transport to the servers: mutual TLS, HTTP/2. config needs the
// authorities and the client's certificate.
func (s *Servers) Transport(config *tls.Config) *http.Transport {
	config = config.Clone()
	config.MinVersion, config.ServerName = tls.VersionTLS12, serverName
	return &http.Transport{
		DialContext: s.Dial, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 8,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// ServersConfig returns the client configuration of a component over a transport
// that Transport made.
func ServersConfig(transport http.RoundTripper, component string) *restclient.Config {
	return &restclient.Config{
		Host: "https://" + serverName, Transport: transport, UserAgent: UserAgent(component), QPS: -1,
		ContentConfig: restclient.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		WarningHandler: restclient.NoWarnings{},
	}
}
