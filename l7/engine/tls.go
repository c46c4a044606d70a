package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"

	"github.com/periplus/periplus/l7"
)

// quiet is where net/http reports what clients do wrong.
var quiet = log.New(io.Discard, "", 0)

// downstreamTLS makes the configuration of a chain; certificates and authorities are
// asked for at each handshake.
func downstreamTLS(c *l7.FilterChain) *tls.Config {
	t := c.TLS
	out := &tls.Config{
		MinVersion: max(t.MinVersion, tls.VersionTLS12), NextProtos: t.ALPN,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return t.Certificates.Certificate(h.ServerName)
		},
	}
	if len(t.ALPN) == 0 && c.HTTP != nil {
		switch c.HTTP.Codec {
		case l7.CodecHTTP1:
			out.NextProtos = []string{"http/1.1"}
		case l7.CodecHTTP2:
			out.NextProtos = []string{"h2"}
		default:
			out.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	if t.ClientRoots == nil {
		return out
	}
	// The library would verify with authorities that are fixed here.
	out.ClientAuth = tls.RequestClientCert
	if t.RequireClient {
		out.ClientAuth = tls.RequireAnyClientCert
	}
	// A resumed session has the client's old certificate; handshakes are cheap enough.
	out.SessionTicketsDisabled = true
	out.VerifyConnection = func(s tls.ConnectionState) error { return verifyClient(t, &s) }
	return out
}

func verifyClient(t *l7.DownstreamTLS, s *tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		if t.RequireClient {
			return errors.New("the client has no certificate")
		}
		return nil
	}
	roots, err := t.ClientRoots.Roots()
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := s.PeerCertificates[0].Verify(options); err != nil {
		return err
	}
	if t.Accept != nil {
		return t.Accept(l7.PeerOf(s))
	}
	return nil
}
