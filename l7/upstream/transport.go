package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/periplus/periplus/l7"
)

// A transport is how connections of one configuration of a cluster are made.
type transport struct {
	config         *l7.Cluster
	idleTimeout    time.Duration
	connectTimeout time.Duration
	h2             *http2.Transport

	mu  sync.Mutex             // guards tls
	tls map[tlsKey]*tls.Config // made when first used
}

type tlsKey struct {
	config *l7.UpstreamTLS
	host   string
}

// A connection is a new one to an endpoint.
type connection struct {
	net.Conn
	tls  *tls.ConnectionState
	peer *l7.Peer
}

func newTransport(c *l7.Cluster) *transport {
	t := &transport{config: c, idleTimeout: c.IdleTimeout, connectTimeout: c.ConnectTimeout}
	if t.idleTimeout == 0 {
		t.idleTimeout = defaultIdleTimeout
	}
	if t.connectTimeout == 0 {
		t.connectTimeout = defaultConnectTimeout
	}
	t.h2 = &http2.Transport{
		AllowHTTP: true, DisableCompression: true,
		IdleConnTimeout: t.idleTimeout, ReadIdleTimeout: 30 * time.Second, PingTimeout: 10 * time.Second,
		MaxHeaderListSize: 1 << 20,
	}
	return t
}

// tlsOf says which TLS an endpoint gets; nil: plain text.
func (t *transport) tlsOf(e *l7.Endpoint) *l7.UpstreamTLS {
	for i := range t.config.TransportMatches {
		m := &t.config.TransportMatches[i]
		ok := true
		for k, v := range m.Metadata {
			if e.Metadata[k] != v {
				ok = false
				break
			}
		}
		if ok {
			return m.TLS
		}
	}
	return t.config.TLS
}

// dial connects, and shakes hands if the endpoint has TLS.
func (t *transport) dial(ctx context.Context, c *Cluster, e *l7.Endpoint) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, t.connectTimeout)
	defer cancel()
	raw, err := c.cfg.Dial(ctx, t.config, e.Address)
	if err != nil {
		return nil, err
	}
	config := t.tlsOf(e)
	if config == nil {
		return &connection{Conn: raw}, nil
	}
	name := e.Hostname
	if name == "" {
		name, _, _ = net.SplitHostPort(e.Address)
	}
	conn := tls.Client(raw, t.tlsConfig(config, name))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("TLS with %s: %w", e.Address, err)
	}
	state := conn.ConnectionState()
	return &connection{Conn: conn, tls: &state, peer: l7.PeerOf(&state)}, nil
}

func (t *transport) tlsConfig(c *l7.UpstreamTLS, host string) *tls.Config {
	if c.ServerName != "" {
		host = c.ServerName
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := tlsKey{c, host}
	if made := t.tls[key]; made != nil {
		return made
	}
	made := &tls.Config{
		ServerName: host, MinVersion: max(c.MinVersion, tls.VersionTLS12), NextProtos: c.ALPN,
		// Verified below, with the authorities of this very moment.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
	}
	if len(c.ALPN) == 0 {
		switch t.config.Protocol {
		case l7.ProtocolHTTP2:
			made.NextProtos = []string{"h2"}
		case l7.ProtocolALPN, l7.ProtocolDownstream:
			made.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	if !c.Insecure {
		made.VerifyConnection = func(s tls.ConnectionState) error { return verify(c, host, &s) }
	}
	if c.Certificates != nil {
		made.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Certificates.Certificate("") }
	} else {
		// With a certificate of our own no session is resumed, since that would also
		// resume the certificate that was used then.
		made.ClientSessionCache = tls.NewLRUClientSessionCache(16)
	}
	if t.tls == nil {
		t.tls = map[tlsKey]*tls.Config{}
	}
	t.tls[key] = made
	return made
}

// verify checks the endpoint's chain and its names.
func verify(c *l7.UpstreamTLS, host string, s *tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the endpoint has no certificate")
	}
	options := x509.VerifyOptions{Intermediates: x509.NewCertPool()}
	if c.Roots != nil {
		roots, err := c.Roots.Roots()
		if err != nil {
			return err
		}
		options.Roots = roots
	}
	if len(c.SubjectAltNames) == 0 {
		options.DNSName = host
	}
	for _, i := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(i)
	}
	leaf := s.PeerCertificates[0]
	if _, err := leaf.Verify(options); err != nil {
		return err
	}
	if len(c.SubjectAltNames) == 0 {
		return nil
	}
	for _, u := range leaf.URIs {
		if slices.Contains(c.SubjectAltNames, u.String()) {
			return nil
		}
	}
	for _, n := range c.SubjectAltNames {
		if leaf.VerifyHostname(n) == nil {
			return nil
		}
	}
	return fmt.Errorf("the endpoint's certificate is for %v, not for any of %v", append(uris(leaf), leaf.DNSNames...), c.SubjectAltNames)
}

func uris(c *x509.Certificate) []string {
	out := make([]string, 0, len(c.URIs))
	for _, u := range c.URIs {
		out = append(out, u.String())
	}
	return out
}
