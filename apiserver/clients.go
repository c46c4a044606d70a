package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
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

// TrustClients replaces the authorities of client certificates, which are also given as
// PEM for extension API servers.
func (s *Server) TrustClients(ctx context.Context, roots *x509.CertPool, text []byte) error {
	s.authn.Certificates.Trust(roots)
	s.hello.Store(s.greeting())
	c, err := kubernetes.NewForConfig(s.ClientConfig("system:apiserver", user.SystemPrivilegedGroup))
	if err != nil {
		return err
	}
	t := s.config.Trust
	t.ClientCA = text
	return t.Publish(ctx, c)
}
