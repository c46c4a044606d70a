package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A Registry holds images and serves them until Close.
type Registry struct {
	address string
	handler http.Handler
	server  *http.Server
	done    chan error
	pulls   atomic.Int64
}

// Serve starts a registry on l, which it closes in the end.
func Serve(l net.Listener) *Registry {
	r := &Registry{address: l.Addr().String(), done: make(chan error, 1)}
	r.handler = registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.server = &http.Server{Handler: http.HandlerFunc(r.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { r.done <- r.server.Serve(l) }()
	return r
}

// serve counts the reads of manifests on their way.
func (r *Registry) serve(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodGet && bytes.Contains([]byte(q.URL.Path), []byte("/manifests/")) {
		r.pulls.Add(1)
	}
	r.handler.ServeHTTP(w, q)
}

// Address is host:port, the first part of its images' names.
func (r *Registry) Address() string { return r.address }

// Pulls is the number of manifests read so far.
func (r *Registry) Pulls() int { return int(r.pulls.Load()) }

// Push stores an image under repository:tag and returns its full name. It needs
// no way through the network to the listener.
func (r *Registry) Push(ctx context.Context, tag string, img v1.Image) (string, error) {
	full := r.address + "/" + tag
	ref, err := name.ParseReference(full, name.Insecure)
	if err != nil {
		return "", err
	}
	if err := remote.Write(ref, img, remote.WithContext(ctx), remote.WithTransport(direct{r.handler})); err != nil {
		return "", fmt.Errorf("push %s: %w", full, err)
	}
	return full, nil
}

// Close ends the registry and forgets its images.
func (r *Registry) Close() error {
	err := r.server.Close()
	if serveErr := <-r.done; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// direct is a transport that calls a handler.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(q *http.Request) (*http.Response, error) {
	in := q.Clone(q.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = q.URL.RequestURI()
	w := &answer{header: http.Header{}, status: http.StatusOK}
	d.handler.ServeHTTP(w, in)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: q,
	}, nil
}

// An answer collects what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
