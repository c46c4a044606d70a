package app

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// etcdTLS is how an external etcd is spoken to; nil without TLS.
func etcdTLS(c *Config) (*tls.Config, error) {
	if c.EtcdCA == "" && c.EtcdCert == "" {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.EtcdCA != "" {
		data, err := os.ReadFile(c.EtcdCA)
		if err != nil {
			return nil, fmt.Errorf("etcd-cafile: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("etcd-cafile: %s holds no PEM certificate", c.EtcdCA)
		}
	}
	if c.EtcdCert != "" {
		cert, err := tls.LoadX509KeyPair(c.EtcdCert, c.EtcdKey)
		if err != nil {
			return nil, fmt.Errorf("etcd-certfile and etcd-keyfile: %w", err)
		}
		out.Certificates = []tls.Certificate{cert}
	}
	return out, nil
}
