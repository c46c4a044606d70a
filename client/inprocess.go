package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// InProcess returns a configuration whose requests call handler directly.
// identify puts the caller's identity into a request's context; everything else
// (authorization, admission, audit) happens as for a request from outside.
func InProcess(handler http.Handler, agent string, identify func(context.Context) context.Context) *rest.Config {
	return &rest.Config{
		Host:      "http://peri.in-process",
		UserAgent: agent,
		Transport: &transport{handler, identify},
		QPS:       -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		WarningHandler: rest.NoWarnings{},
	}
}

type transport struct {
	handler  http.Handler
	identify func(context.Context) context.Context
}

// RoundTrip runs the handler in a goroutine. The answer is returned when the
// handler ends or flushes for the first time; after a flush the body is a
// stream that lasts until the handler ends or the body is closed.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(t.identify(r.Context()))
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out := &answer{header: http.Header{}, ready: make(chan struct{})}
	go func() {
		defer cancel()
		defer out.end()
		t.handler.ServeHTTP(out, in)
	}()
	select {
	case <-out.ready:
	case <-r.Context().Done():
		cancel()
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(out.code), StatusCode: out.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: out.sent, Body: &body{out, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// An answer is what a handler has written and a client not yet read.
type answer struct {
	header http.Header
	ready  chan struct{} // closed by the first flush or the end

	mu     sync.Mutex
	more   sync.Cond
	code   int
	sent   http.Header
	buf    bytes.Buffer
	begun  bool
	ended  bool
	closed bool // by the reader
}

var _ http.Flusher = (*answer)(nil)

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.headLocked(code)
}

func (a *answer) headLocked(code int) {
	if a.code == 0 {
		a.code, a.sent = code, a.header.Clone()
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.headLocked(http.StatusOK)
	if a.closed {
		return 0, io.ErrClosedPipe
	}
	return a.buf.Write(p)
}

func (a *answer) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beginLocked()
}

func (a *answer) beginLocked() {
	a.headLocked(http.StatusOK)
	if !a.begun {
		a.begun = true
		a.more.L = &a.mu
		close(a.ready)
	}
	a.more.Broadcast()
}

func (a *answer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.beginLocked()
}

// body reads an answer.
type body struct {
	a      *answer
	cancel context.CancelFunc
}

func (b *body) Read(p []byte) (int, error) {
	a := b.a
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.buf.Len() == 0 && !a.ended && !a.closed {
		a.more.Wait()
	}
	if a.buf.Len() > 0 && !a.closed {
		return a.buf.Read(p)
	}
	return 0, io.EOF
}

func (b *body) Close() error {
	b.cancel()
	b.a.mu.Lock()
	defer b.a.mu.Unlock()
	b.a.closed = true
	b.a.beginLocked()
	return nil
}
