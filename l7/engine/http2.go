package engine

import (
	"context"
	"io"
	"net"
	"net/http"

	"golang.org/x/net/http2"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/http1"
	"github.com/periplus/periplus/l7/upstream"
)

// serveHTTP2 serves a connection until it ends; each request has a goroutine.
func (c *conn) serveHTTP2(stream net.Conn) {
	m := c.chain.http
	if c.info.TLS != nil {
		stream = c.stream // nothing was looked at; the library wants to see TLS
	}
	// A server for this connection alone, so that it alone can be told to end.
	base := &http.Server{MaxHeaderBytes: m.MaxHeaderBytes, ErrorLog: quiet} //nolint:gosec // it accepts nothing itself
	server := &http2.Server{MaxConcurrentStreams: m.MaxStreams, IdleTimeout: m.IdleTimeout, MaxUploadBufferPerStream: 256 << 10}
	if err := http2.ConfigureServer(base, server); err != nil {
		return
	}
	c.mu.Lock()
	c.onDrain = func() {
		go func() { _ = base.Shutdown(context.Background()) }() // sends GOAWAY
	}
	c.mu.Unlock()
	if c.draining.Load() {
		return
	}
	server.ServeConn(stream, &http2.ServeConnOpts{
		Context: c.engine.ctx, BaseConfig: base,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.request2(w, r) }),
	})
}

// h2 is one request of an HTTP/2 connection.
type h2 struct {
	w     http.ResponseWriter
	r     *http.Request
	flow  flow
	wrote bool
}

func (c *conn) request2(w http.ResponseWriter, r *http.Request) {
	now := c.engine.now.Load()
	c.mu.Lock()
	m := c.current(now)
	c.mu.Unlock()
	s := &h2{w: w, r: r}
	f := &s.flow
	f.engine, f.down, f.info = c.engine, s, &c.info
	f.reset(&c.info, r.Context)
	q := &f.x.Request
	q.Method, q.Authority, q.Path, q.Proto = r.Method, r.Host, r.RequestURI, "HTTP/2"
	q.Scheme = "http"
	if c.info.TLS != nil {
		q.Scheme = "https"
	}
	if r.Method == http.MethodConnect {
		q.Path = ""
	}
	q.Header = upstream.FromHTTP(make(l7.Header, 0, len(r.Header)+6), r.Header)
	q.Header.Del("Content-Length")
	q.Header.Del("Expect")
	q.ContentLength = r.ContentLength
	if r.Body != nil && r.Body != http.NoBody {
		q.Body = s
	} else {
		q.ContentLength = 0
	}
	if len(r.Trailer) > 0 {
		q.Trailer = upstream.FromHTTP(nil, r.Trailer)
	}
	f.serve(now, m)
	if f.aborted {
		panic(http.ErrAbortHandler) // RST_STREAM
	}
}

// Read reads the request's body and, at its end, the trailer.
func (s *h2) Read(p []byte) (int, error) {
	n, err := s.r.Body.Read(p)
	if err == io.EOF && len(s.r.Trailer) > 0 { //nolint:errorlint // an io.Reader's EOF is not wrapped
		s.flow.x.Request.Trailer = upstream.FromHTTP(nil, s.r.Trailer)
	}
	return n, err
}

// respond implements responder.
func (s *h2) respond(f *flow) error {
	r := &f.x.Response
	h := s.w.Header()
	for _, field := range r.Header {
		if !http1.ValidName(field.Name) || !http1.ValidValue(field.Value) || connectionField(field.Name) {
			continue
		}
		k := http.CanonicalHeaderKey(field.Name)
		h[k] = append(h[k], field.Value)
	}
	// Neither guessed nor added by the library.
	for _, k := range []string{"Date", "Content-Type"} {
		if _, ok := h[k]; !ok {
			h[k] = nil
		}
	}
	hasBody := http1.HasBody(f.x.Request.Method, r.Status) && r.Body != nil
	if r.ContentLength > 0 || r.ContentLength == 0 && !hasBody && !f.x.Request.GRPC() {
		if r.Status/100 != 1 && r.Status != 204 {
			h["Content-Length"] = []string{itoa(r.ContentLength)}
		}
	}
	s.w.WriteHeader(r.Status)
	s.wrote = true
	if !hasBody {
		return nil
	}
	flusher := s.w.(http.Flusher)
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	if f.call.Ready() == 0 && !r.Local {
		flusher.Flush() // the first piece may take its time
	}
	for {
		n, err := r.Body.Read(*buf)
		if n > 0 {
			f.x.BytesSent += int64(n)
			if _, err := s.w.Write((*buf)[:n]); err != nil {
				return &clientError{err}
			}
			if err == nil && f.call.Ready() == 0 {
				flusher.Flush()
			}
		}
		if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
			for _, field := range r.Trailer {
				h.Add(http.TrailerPrefix+field.Name, field.Value)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// connectionField says which fields HTTP/2 does not have (RFC 9113 §8.2.2).
func connectionField(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Content-Length":
		return true
	}
	return false
}

// context implements responder.
func (s *h2) context() context.Context { return s.r.Context() }

// interrupt implements responder.
func (s *h2) interrupt() { _ = s.r.Body.Close() }

// watch implements responder.
func (s *h2) watch(abort func()) (stop func()) {
	end := context.AfterFunc(s.r.Context(), abort)
	return func() { end() }
}

// abort implements responder.
func (s *h2) abort() { s.flow.aborted = true }

// upgrade implements responder: HTTP/2 has no Upgrade.
func (s *h2) upgrade(*flow, *upstream.Call) error { return io.ErrUnexpectedEOF }

var _ responder = (*h2)(nil)
