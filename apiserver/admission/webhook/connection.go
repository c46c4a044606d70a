package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/spans"
)

const (
	// maxAnswer bounds what a webhook may answer, in bytes.
	maxAnswer = 10 << 20
	// idleConnection is how long an unused connection is kept.
	idleConnection = 60 * time.Second
)

// A Connection is the way to one webhook. It keeps TCP connections while they are used.
type Connection struct {
	url    url.URL
	client *http.Client
}

// Connect prepares the way to a webhook by URL or by Service.
func Connect(c *admissionregistrationv1.WebhookClientConfig, services Services) (*Connection, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(c.CABundle) {
			return nil, fmt.Errorf("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	transport := &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: idleConnection,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	out := &Connection{client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	switch {
	case c.Service != nil:
		s := c.Service
		port := int32(443)
		if s.Port != nil {
			port = *s.Port
		}
		host := s.Name + "." + s.Namespace + ".svc"
		config.ServerName = host
		out.url = url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
		if s.Path != nil {
			out.url.Path = *s.Path
		}
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return services.Dial(ctx, network, s.Namespace, s.Name, port)
		}
	case c.URL != nil:
		u, err := url.Parse(*c.URL)
		if err != nil {
			return nil, fmt.Errorf("unparsable webhook URL: %w", err)
		}
		out.url = *u
	default:
		return nil, fmt.Errorf("webhook configuration must have either service or URL")
	}
	return out, nil
}

// Close gives up the connections that are not in use.
func (c *Connection) Close() { c.client.CloseIdleConnections() }

// Post sends a question as JSON and reads the answer into answer.
func (c *Connection) Post(ctx context.Context, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	u := c.url
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			q := u.Query()
			q.Set("timeout", (left + time.Second - 1).Truncate(time.Second).String())
			u.RawQuery = q.Encode()
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", "kube-apiserver-admission")
	spans.Pass(ctx, r.Header)
	resp, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return apierrors.NewGenericServerResponse(resp.StatusCode, "POST", schema.GroupResource{}, "", string(bytes.TrimSpace(data)), 0, true)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("couldn't decode webhook response: %w", err)
	}
	return nil
}
