package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// userAgent is how servers know a probe; they may log it less.
const userAgent = "kube-probe/1.37"

func newTransport() *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{
			// A probe asks whether the container answers, not who it is: its address is the
			// pod's, for which no certificate could be valid. Documented behaviour of
			// `scheme: HTTPS`; nothing secret is sent.
			InsecureSkipVerify: true, //nolint:gosec,forbidigo // see above
			MinVersion:         tls.VersionTLS10,
		},
		TLSHandshakeTimeout:    10 * time.Second,
		DisableKeepAlives:      true, // each probe proves that a connection can be made
		DisableCompression:     true,
		Proxy:                  nil, // straight to the pod
		DialContext:            dial,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// dial closes its connections without leaving them in TIME_WAIT for long: a node
// makes thousands of them.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if t, ok := conn.(*net.TCPConn); ok {
		if err := t.SetLinger(1); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// httpGet succeeds when the answer's status is 200-399 in time.
func (p *Prober) httpGet(ctx context.Context, c *container, action *corev1.HTTPGetAction, limit time.Duration) (Result, string, error) {
	req, err := request(ctx, c, action)
	if err != nil {
		return Unknown, "", err
	}
	client := http.Client{Transport: p.http, Timeout: limit, CheckRedirect: sameHost}
	response, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return Unknown, "", ctx.Err()
		}
		return Failure, err.Error(), nil
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxOutput))
	if err != nil {
		return Failure, err.Error(), nil //nolint:nilerr // an answer that breaks off is a failure
	}
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return Success, string(body), nil
	case code >= 300 && code < 400:
		return Success, fmt.Sprintf("Probe terminated redirects, Response body: %v", string(body)), errWarning
	default:
		return Failure, fmt.Sprintf("HTTP probe failed with statuscode: %d", code), nil
	}
}

// sameHost follows redirects to the same host only; another host's answer says
// nothing about the container, so the redirect itself is the answer.
func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

func request(ctx context.Context, c *container, action *corev1.HTTPGetAction) (*http.Request, error) {
	n, err := port(c.spec, action.Port)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(action.Path)
	if err != nil { // something with a blank or a colon: take it as a path
		u = &url.URL{Path: action.Path}
	}
	u.Scheme = "http"
	if action.Scheme != "" {
		u.Scheme = strings.ToLower(string(action.Scheme))
	}
	u.Host = net.JoinHostPort(host(action.Host, c.podIP), strconv.Itoa(n))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, h := range action.HTTPHeaders {
		req.Header.Add(h.Name, h.Value)
	}
	if h := req.Header.Get("Host"); h != "" {
		req.Host = h
	}
	// An empty value of the user's takes the header away.
	setDefault(req.Header, "User-Agent", userAgent)
	setDefault(req.Header, "Accept", "*/*")
	return req, nil
}

func setDefault(h http.Header, name, value string) {
	switch given, ok := h[name]; {
	case !ok:
		h.Set(name, value)
	case len(given) > 0 && given[0] == "" && name == "Accept":
		h.Del(name)
	}
}
