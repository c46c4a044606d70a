package l7

import (
	"crypto/tls"
	"crypto/x509"
)

// A CertificateSource gives the certificate of each handshake. It is asked every
// time, so that a certificate can be replaced while the engine runs and while
// connections are open (xDS: SDS). It must be safe for concurrent use and fast.
type CertificateSource interface {
	// Certificate returns the certificate for a server name: empty when the client
	// named none, and always on the client side.
	Certificate(serverName string) (*tls.Certificate, error)
}

// A RootSource gives the authorities that a peer's certificate is verified with,
// asked at each handshake.
type RootSource interface {
	Roots() (*x509.CertPool, error)
}

// StaticCertificate is a CertificateSource of one certificate.
type StaticCertificate struct{ Pair tls.Certificate }

// Certificate implements CertificateSource.
func (s *StaticCertificate) Certificate(string) (*tls.Certificate, error) { return &s.Pair, nil }

// StaticRoots is a RootSource of one pool.
type StaticRoots struct{ Pool *x509.CertPool }

// Roots implements RootSource.
func (s *StaticRoots) Roots() (*x509.CertPool, error) { return s.Pool, nil }

// DownstreamTLS is TLS towards clients.
type DownstreamTLS struct {
	Certificates CertificateSource
	// ClientRoots verify the client's certificate; nil: clients are not asked for one.
	ClientRoots RootSource
	// RequireClient refuses clients without a certificate.
	RequireClient bool
	// Accept decides about a verified peer; nil accepts every verified one.
	Accept func(*Peer) error
	// ALPN are the protocols offered, best first. Empty: "h2", "http/1.1" for HTTP.
	ALPN []string
	// MinVersion is a tls.VersionTLS…; zero: 1.2.
	MinVersion uint16
}

// UpstreamTLS is TLS towards endpoints.
type UpstreamTLS struct {
	// ServerName is sent as SNI and, unless SubjectAltNames is set, verified. Empty:
	// the host name of the endpoint.
	ServerName string
	// Certificates is this side's certificate; nil: none.
	Certificates CertificateSource
	// Roots verify the endpoint; nil: those of the system.
	Roots RootSource
	// SubjectAltNames are the names of which the endpoint's certificate must have one:
	// DNS names or URIs (SPIFFE).
	SubjectAltNames []string
	// Insecure does not verify the endpoint at all.
	Insecure bool
	// ALPN are the protocols offered; empty: by the cluster's protocol.
	ALPN       []string
	MinVersion uint16
}

// A Peer is the other side of a TLS connection.
type Peer struct {
	// URI is the first URI name of its certificate, the SPIFFE ID in a mesh:
	// spiffe://cluster.local/ns/NS/sa/SA. Empty without one.
	URI string
	// DNSNames of its certificate.
	DNSNames []string
	// Certificate is what it presented; nil without one.
	Certificate *x509.Certificate
}

// Principal is the SPIFFE ID without its scheme, as authorization policies write it.
func (p *Peer) Principal() string {
	if p == nil {
		return ""
	}
	const scheme = "spiffe://"
	if len(p.URI) > len(scheme) && p.URI[:len(scheme)] == scheme {
		return p.URI[len(scheme):]
	}
	return p.URI
}

// PeerOf reads a connection's peer from its verified certificates; nil without any.
func PeerOf(state *tls.ConnectionState) *Peer {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	c := state.PeerCertificates[0]
	p := &Peer{Certificate: c, DNSNames: c.DNSNames}
	if len(c.URIs) > 0 {
		p.URI = c.URIs[0].String()
	}
	return p
}

// PrivateALPN reports whether a negotiated protocol is one that the two sides have
// agreed on for themselves ("istio-http/1.1"): it does not tell the version of HTTP,
// which is found out by the first bytes, and known beforehand on the client's side.
func PrivateALPN(protocol string) bool {
	switch protocol {
	case "", "h2", "http/1.1", "http/1.0":
		return false
	}
	return true
}
