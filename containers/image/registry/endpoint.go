package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// endpoint is one place that may have a repository's content.
type endpoint struct {
	host      string
	path      string // of the repository there
	namespace string // of a mirror: the registry that it stands for
	origin    bool   // it is the registry itself
	plain     bool   // HTTP is allowed
	onlyPlain bool   // HTTP is the only way
	auth      *authn.AuthConfig
	inner     http.RoundTripper
	suspect   atomic.Bool // to be asked after the others

	mu     sync.Mutex // guards client; held while connecting, so that one does it for all
	client *http.Client
}

func (e *endpoint) same(o *endpoint) bool { return e.host == o.host && e.path == o.path }

// connect shakes hands with the registry: TLS or not, and a token for the repository.
func (e *endpoint) connect(ctx context.Context) (*http.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client != nil {
		return e.client, nil
	}
	var opts []name.Option
	if e.plain {
		opts = append(opts, name.Insecure)
	}
	reg, err := name.NewRegistry(e.host, opts...)
	if err != nil {
		return nil, err
	}
	auth := authn.Anonymous
	if e.auth != nil {
		auth = authn.FromConfig(*e.auth)
	}
	scopes := []string{"repository:" + e.path + ":" + transport.PullScope}
	rt, err := transport.NewWithContext(ctx, reg, auth, &guard{e}, scopes)
	if err != nil {
		return nil, e.describe(err)
	}
	e.client = &http.Client{Transport: rt}
	return e.client, nil
}

// get asks for /v2/<path>/<what>.
func (e *endpoint) get(ctx context.Context, method, what string, header http.Header) (*http.Response, error) {
	client, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "https", Host: e.host, Path: "/v2/" + e.path + "/" + what} // the transport knows whether it is http
	if e.namespace != "" {
		u.RawQuery = url.Values{"ns": {e.namespace}}.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return nil, e.describe(err)
	}
	if err := transport.CheckError(resp, http.StatusOK, http.StatusPartialContent); err != nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
		resp.Body.Close()
		return nil, e.describe(err)
	}
	return resp, nil
}

// describe turns what went wrong into the sentinel errors, with the words that people know.
func (e *endpoint) describe(err error) error {
	var te *transport.Error
	if !errors.As(err, &te) {
		return fmt.Errorf("failed to do request: %w", err)
	}
	var said []string
	for _, d := range te.Errors {
		said = append(said, strings.TrimSuffix(strings.ToLower(string(d.Code))+": "+d.Message, ": "))
	}
	server := ""
	if len(said) > 0 {
		server = ": server message: " + strings.Join(said, "; ")
	}
	switch te.StatusCode {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w%s", ErrDenied, server)
	}
	what := e.host
	if te.Request != nil {
		what = te.Request.Method + " request to " + te.Request.URL.Redacted()
	}
	return fmt.Errorf("unexpected status from %s: %d %s%s", what, te.StatusCode, http.StatusText(te.StatusCode), server)
}

// guard keeps to what the configuration says about TLS, whatever the library
// above thinks of an address.
type guard struct{ e *endpoint }

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == g.e.host {
		switch {
		case g.e.onlyPlain && req.URL.Scheme == "https":
			req = req.Clone(req.Context())
			req.URL.Scheme = "http"
		case !g.e.plain && req.URL.Scheme == "http":
			return nil, fmt.Errorf("%w (%s)", ErrPlainHTTP, g.e.host)
		}
	}
	return g.e.inner.RoundTrip(req)
}
