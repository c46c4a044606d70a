package apiserver

import (
	"crypto/tls"
	"crypto/x509"
)

// tlsConfig is how connections begin. Client certificates are asked for and judged by
// authentication, request by request: a proxy's has another authority than a user's, and
// authorities may be replaced while connections last.
func (s *Server) tlsConfig() *tls.Config {
	s.hello.Store(s.greeting())
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: s.config.Certificate,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.hello.Load(), nil },
	}
}

// greeting names the authorities whose certificates are of use.
func (s *Server) greeting() *tls.Config {
	authorities := x509.NewCertPool()
	if roots := s.authn.Certificates.Roots(); roots != nil {
		authorities = roots.Clone()
	}
	authorities.AppendCertsFromPEM(s.config.Trust.ProxyCA)
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: s.config.Certificate, ClientAuth: tls.RequestClientCert, ClientCAs: authorities,
	}
}

// TrustClients replaces the authorities of client certificates.
func (s *Server) TrustClients(roots *x509.CertPool) {
	s.authn.Certificates.Trust(roots)
	s.hello.Store(s.greeting())
}
