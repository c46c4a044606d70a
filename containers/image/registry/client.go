package registry

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
)

var (
	// ErrNotFound is returned when the registry has no such manifest or blob.
	ErrNotFound = errors.New("not found")
	// ErrDenied is returned when the registry refuses access. Many registries do so for repositories that do not exist.
	ErrDenied = errors.New("pull access denied, repository does not exist or may require authorization")
	// ErrPlainHTTP is returned when a registry would have to be spoken to without TLS and nobody allowed that.
	ErrPlainHTTP = errors.New("plain HTTP is not allowed for this registry")
)

// Config says how registries are reached.
type Config struct {
	Mirrors     map[string][]string         // by registry host, "*" for all; URLs or hosts
	PlainHTTP   []string                    // registries that may lack TLS
	InsecureTLS []string                    // registries whose certificate is not verified
	Auths       map[string]authn.AuthConfig // by registry host
	Transport   *http.Transport             // nil: a new one
}

// Client reaches registries.
type Client struct {
	config   Config
	verified *http.Transport
	insecure *http.Transport // does not verify certificates
}

// New makes a client.
func New(c Config) *Client {
	t := c.Transport
	if t == nil {
		t = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   8,
			IdleConnTimeout:       15 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: time.Minute,
			DisableCompression:    true, // what is digested must come as it is
		}
	}
	insecure := t.Clone()
	if insecure.TLSClientConfig == nil {
		insecure.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	insecure.TLSClientConfig.InsecureSkipVerify = true //nolint:gosec // asked for by configuration, per registry
	return &Client{config: c, verified: t, insecure: insecure}
}

// Close closes idle connections.
func (c *Client) Close() {
	c.verified.CloseIdleConnections()
	c.insecure.CloseIdleConnections()
}

// Repository is the repository path ("library/nginx") of the registry host
// ("docker.io"). auth, if not nil, is for that registry.
func (c *Client) Repository(host, path string, auth *authn.AuthConfig) *Repository {
	r := &Repository{host: host, path: path}
	mirrors, ok := c.config.Mirrors[host]
	if !ok {
		mirrors = c.config.Mirrors["*"]
	}
	for _, m := range mirrors {
		if e := c.mirror(m, host, path); e != nil && !slices.ContainsFunc(r.endpoints, e.same) {
			r.endpoints = append(r.endpoints, e)
		}
	}
	origin := c.endpoint(canonicalHost(host), path)
	if auth == nil {
		auth = c.auth(host)
	}
	origin.auth, origin.origin = auth, true
	r.endpoints = slices.DeleteFunc(r.endpoints, origin.same)
	r.endpoints = append(r.endpoints, origin)
	return r
}

// canonicalHost is where a registry really is.
func canonicalHost(host string) string {
	if host == "docker.io" || host == "index.docker.io" {
		return "registry-1.docker.io"
	}
	return host
}

// endpoint is one place that may have a repository's content.
func (c *Client) endpoint(host, path string) *endpoint {
	e := &endpoint{host: host, path: path, inner: c.verified}
	e.plain = loopback(host) || contains(c.config.PlainHTTP, host)
	if contains(c.config.InsecureTLS, host) {
		e.inner = c.insecure
	}
	return e
}

// mirror makes an endpoint of a configured mirror: "host", "https://host" or "http://host/prefix".
func (c *Client) mirror(address, forHost, path string) *endpoint {
	if !strings.Contains(address, "://") {
		address = "https://" + address
		if host := strings.TrimPrefix(address, "https://"); loopback(host) || contains(c.config.PlainHTTP, host) {
			address = "http://" + host
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil
	}
	prefix := strings.Trim(u.Path, "/")
	prefix = strings.Trim(strings.TrimPrefix(prefix+"/", "v2/"), "/") // "/v2/proxy" and "/proxy" are the same
	if prefix != "" {
		path = prefix + "/" + path
	}
	e := c.endpoint(canonicalHost(u.Host), path)
	e.namespace, e.auth = forHost, c.auth(u.Host)
	if u.Scheme == "http" {
		e.plain, e.onlyPlain = true, true
	}
	return e
}

// auth is what the configuration has for a host.
func (c *Client) auth(host string) *authn.AuthConfig {
	if a, ok := c.config.Auths[host]; ok {
		return &a
	}
	return nil
}

func contains(list []string, host string) bool {
	name := hostname(host)
	return slices.ContainsFunc(list, func(s string) bool { return s == host || s == name })
}

func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

// loopback reports a host that is this machine.
func loopback(host string) bool {
	name := hostname(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
