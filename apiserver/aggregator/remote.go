package aggregator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/discovery"
)

const (
	// checkTimeout bounds the questions that this server itself asks of another.
	checkTimeout = 5 * time.Second
	// maxDocument bounds what another server may answer to them, in bytes.
	maxDocument = 64 << 20
)

// A remote is the way to one extension API server for one group version. A changed
// APIService has a new one.
type remote struct {
	name string
	uid  types.UID
	gv   schema.GroupVersion
	spec apiregistrationv1.APIServiceSpec
	host string // in URLs and in the certificate that is expected

	transport *http.Transport
	broken    error // why there is no transport
	changed   chan struct{}
	stop      context.CancelFunc

	mu    sync.Mutex // guards what follows
	found discovery.Remote
	v3    string // the path of its document of OpenAPI v3 with the hash; "" is none
	v2    swagger
	own   conversion // of the document of OpenAPI v2, if there is none of v3
}

// remote prepares the way to the server of an APIService.
func (s *Server) remote(a *apiregistrationv1.APIService) *remote {
	to := a.Spec.Service
	port := int32(443)
	if to.Port != nil {
		port = *to.Port
	}
	r := &remote{
		name: a.Name, uid: a.UID, gv: schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}, spec: a.Spec,
		host: to.Name + "." + to.Namespace + ".svc", changed: make(chan struct{}, 1), found: discovery.Remote{Stale: true},
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: r.host, InsecureSkipVerify: a.Spec.InsecureSkipTLSVerify, //nolint:gosec // the administrator's wish
		GetClientCertificate: s.config.ProxyClient,
	}
	if len(a.Spec.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(a.Spec.CABundle) {
			r.broken = errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	namespace, name := to.Namespace, to.Name
	r.transport = &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 25, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return s.dial(ctx, network, namespace, name, port)
		},
	}
	r.host = net.JoinHostPort(r.host, strconv.Itoa(int(port)))
	return r
}

// dial connects to a Service: to an endpoint, or to its cluster IP.
func (s *Server) dial(ctx context.Context, network, namespace, name string, port int32) (net.Conn, error) {
	if s.config.ClusterIPs {
		if obj, err := s.config.Rest.Get(services, namespace, name); err == nil {
			if ip := obj.(*corev1.Service).Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
				d := net.Dialer{Timeout: checkTimeout}
				return d.DialContext(ctx, network, net.JoinHostPort(ip, strconv.Itoa(int(port))))
			}
		}
	}
	return s.dialer.Dial(ctx, network, namespace, name, port)
}

func (r *remote) poke() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *remote) discovered() discovery.Remote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}

// get asks for a document as this server itself. The body is nil when it is the one
// that etag names.
func (r *remote) get(ctx context.Context, path, accept, etag string) (body []byte, tag string, err error) {
	if r.broken != nil {
		return nil, "", r.broken
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	u := url.URL{Scheme: "https", Host: r.host, Path: path}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, "", err
	}
	q.Header.Set("Accept", accept)
	if etag != "" {
		q.Header.Set("If-None-Match", etag)
	}
	transport.SetAuthProxyHeaders(q, "system:kube-aggregator", "", []string{user.SystemPrivilegedGroup}, nil)
	resp, err := r.transport.RoundTrip(q)
	if err != nil {
		r.transport.CloseIdleConnections()
		return nil, "", fmt.Errorf("failing or missing response from %s: %w", &u, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified && etag != "" {
		return nil, etag, nil
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, "", &statusError{url: u.String(), code: resp.StatusCode}
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("the answer is longer than %d bytes", maxDocument)
	}
	if err != nil {
		return nil, "", fmt.Errorf("failing or missing response from %s: %w", &u, err)
	}
	return body, resp.Header.Get("Etag"), nil
}

// A statusError is returned when another server answers with an error.
type statusError struct {
	url  string
	code int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("failing or missing response from %s: bad status from %s: %d", e.url, e.url, e.code)
}
