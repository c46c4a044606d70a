package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"github.com/periplus/periplus/apiserver/aggregator"
	"github.com/periplus/periplus/base/pki"
)

const (
	proxyAuthority = "front-proxy-ca"
	proxyLeaf      = "front-proxy-client"
)

// ProxyConfig is how the API server and proxies in front of it and behind it know each
// other. Without files the cluster has an authority of its own for them.
type ProxyConfig struct {
	// RequestHeaderCA verifies proxies whose headers name users; RequestHeaderNames are
	// the common names that they may have (none: any).
	RequestHeaderCA    string   `json:"requestheader-client-ca-file,omitempty"`
	RequestHeaderNames []string `json:"requestheader-allowed-names,omitempty"`
	// The headers by which they name users.
	RequestHeaderUsers  []string `json:"requestheader-username-headers,omitempty"`
	RequestHeaderUIDs   []string `json:"requestheader-uid-headers,omitempty"`
	RequestHeaderGroups []string `json:"requestheader-group-headers,omitempty"`
	RequestHeaderExtras []string `json:"requestheader-extra-headers-prefix,omitempty"`
	// ProxyClientCert and ProxyClientKey prove the API server to extension API servers.
	ProxyClientCert string `json:"proxy-client-cert-file,omitempty"`
	ProxyClientKey  string `json:"proxy-client-key-file,omitempty"`
	// AggregatorRouting reaches extension API servers at the endpoints of their Services,
	// else at their cluster IPs.
	AggregatorRouting bool `json:"enable-aggregator-routing"`
}

func (c *ProxyConfig) flags(f *pflag.FlagSet) {
	f.StringVar(&c.RequestHeaderCA, "requestheader-client-ca-file", c.RequestHeaderCA, "authority of proxies whose headers name users (default: the cluster's own)")
	f.StringSliceVar(&c.RequestHeaderNames, "requestheader-allowed-names", c.RequestHeaderNames, "common names that such proxies may have; empty allows any of the authority's")
	f.StringSliceVar(&c.RequestHeaderUsers, "requestheader-username-headers", c.RequestHeaderUsers, "headers that name the user")
	f.StringSliceVar(&c.RequestHeaderUIDs, "requestheader-uid-headers", c.RequestHeaderUIDs, "headers with the user's UID")
	f.StringSliceVar(&c.RequestHeaderGroups, "requestheader-group-headers", c.RequestHeaderGroups, "headers with the user's groups")
	f.StringSliceVar(&c.RequestHeaderExtras, "requestheader-extra-headers-prefix", c.RequestHeaderExtras, "prefixes of headers with further attributes of the user")
	f.StringVar(&c.ProxyClientCert, "proxy-client-cert-file", c.ProxyClientCert, "certificate that proves the API server to extension API servers (default: the cluster's own)")
	f.StringVar(&c.ProxyClientKey, "proxy-client-key-file", c.ProxyClientKey, "key of proxy-client-cert-file")
	f.BoolVar(&c.AggregatorRouting, "enable-aggregator-routing", c.AggregatorRouting, "reach extension API servers at the endpoints of their Services; false: at their cluster IPs")
}

func defaultProxyConfig() ProxyConfig {
	return ProxyConfig{
		RequestHeaderUsers: []string{"X-Remote-User"}, RequestHeaderUIDs: []string{"X-Remote-Uid"}, RequestHeaderGroups: []string{"X-Remote-Group"},
		RequestHeaderExtras: []string{"X-Remote-Extra-"}, AggregatorRouting: true,
	}
}

func (c *ProxyConfig) validate() error {
	if (c.ProxyClientCert == "") != (c.ProxyClientKey == "") {
		return errors.New("proxy-client-cert-file and proxy-client-key-file: one is not allowed without the other")
	}
	if c.RequestHeaderCA != "" && len(c.RequestHeaderUsers) == 0 {
		return errors.New("requestheader-username-headers: an empty list is not allowed: must name a header with requestheader-client-ca-file")
	}
	return nil
}

// openProxy reads or makes the authority and the certificate of the front proxy.
func (id *identities) openProxy(dir string) (err error) {
	if id.proxyCA, err = pki.OpenAuthority(dir, proxyAuthority); err != nil {
		return err
	}
	id.proxy, err = pki.OpenLeaf(id.proxyCA, filepath.Join(dir, proxyLeaf), pki.Request{CommonName: proxyLeaf, Client: true})
	return err
}

// trust is what the API server and extension API servers are to believe.
func (s *controlPlane) trust() (aggregator.Trust, error) {
	c := &s.config.ProxyConfig
	t := aggregator.Trust{
		ProxyCA: s.id.proxyCA.PEM, ProxyNames: c.RequestHeaderNames,
		UserHeaders: c.RequestHeaderUsers, UIDHeaders: c.RequestHeaderUIDs, GroupHeaders: c.RequestHeaderGroups, ExtraPrefixes: c.RequestHeaderExtras,
	}
	var err error
	if _, t.ClientCA, err = s.clientCAs(); err != nil {
		return t, err
	}
	if c.RequestHeaderCA == "" {
		if len(t.ProxyNames) == 0 {
			t.ProxyNames = []string{proxyLeaf}
		}
		return t, nil
	}
	if t.ProxyCA, err = os.ReadFile(c.RequestHeaderCA); err != nil {
		return t, fmt.Errorf("requestheader-client-ca-file: %w", err)
	}
	return t, nil
}

// proxyClient returns the certificate that proves the API server to extension API servers.
func (s *controlPlane) proxyClient() (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	c := &s.config.ProxyConfig
	if c.ProxyClientCert == "" {
		return s.id.proxy.Client, nil
	}
	p := &pair{cert: c.ProxyClientCert, key: c.ProxyClientKey}
	if _, err := p.load(); err != nil {
		return nil, fmt.Errorf("proxy-client-cert-file: %w", err)
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return p.load() }, nil
}

// A pair is a certificate in files, which others may replace at any time.
type pair struct {
	cert, key string

	mu      sync.Mutex // guards what follows
	changed int64      // the time stamp of what was read, in nanoseconds
	now     *tls.Certificate
}

// load returns the certificate as it is in the files now. While they do not fit each
// other it is the one before.
func (p *pair) load() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.cert)
	if err == nil && p.now != nil && info.ModTime().UnixNano() == p.changed {
		return p.now, nil
	}
	if err == nil {
		var read tls.Certificate
		if read, err = tls.LoadX509KeyPair(p.cert, p.key); err == nil {
			p.now, p.changed = &read, info.ModTime().UnixNano()
			return p.now, nil
		}
	}
	if p.now != nil {
		return p.now, nil
	}
	return nil, err
}
