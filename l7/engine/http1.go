package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/http1"
	"github.com/periplus/periplus/l7/upstream"
)

// rearmEvery is how stale a deadline of minutes may become before it is set again.
const rearmEvery = time.Second

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// serveHTTP finds out which HTTP the client speaks.
func (c *conn) serveHTTP() {
	in := http1.NewReader(c.stream, nil)
	codec := c.chain.http.Codec
	if c.info.TLS != nil && c.info.TLS.NegotiatedProtocol == "h2" {
		codec = l7.CodecHTTP2
	}
	// Protocols of a mesh ("istio") say nothing about the version.
	if codec == l7.CodecAuto && (c.info.TLS == nil || l7.PrivateALPN(c.info.TLS.NegotiatedProtocol)) {
		switch is, err := beginsHTTP2(c, in); {
		case err != nil:
			return
		case is:
			codec = l7.CodecHTTP2
		}
	}
	if codec == l7.CodecHTTP2 {
		c.info.Protocol = "HTTP/2"
		c.serveHTTP2(&peeked{c.stream, append([]byte(nil), in.Buffered()...)})
		return
	}
	c.info.Protocol = "HTTP/1.1"
	s := &h1{conn: c, in: in}
	s.flow.engine, s.flow.down, s.flow.info = c.engine, s, &c.info
	s.run()
	if s.cancel != nil {
		s.cancel()
	}
}

// beginsHTTP2 looks for the preface of HTTP/2 by prior knowledge.
func beginsHTTP2(c *conn, in *http1.Reader) (bool, error) {
	_ = c.raw.SetReadDeadline(time.Now().Add(c.chain.http.IdleTimeout))
	for {
		b := in.Buffered()
		n := min(len(b), len(http2Preface))
		if string(b[:n]) != http2Preface[:n] {
			return false, nil
		}
		if n == len(http2Preface) {
			_ = c.raw.SetReadDeadline(time.Time{})
			return true, nil
		}
		if n == 0 && !c.state.CompareAndSwap(connActive, connIdle) {
			return false, net.ErrClosed
		}
		err := in.Fill(http1.BufferSize)
		if n == 0 && !c.state.CompareAndSwap(connIdle, connActive) {
			return false, net.ErrClosed
		}
		if err != nil {
			return false, err
		}
	}
}

// h1 serves the requests of an HTTP/1 connection, one after the other.
type h1 struct {
	conn *conn
	in   *http1.Reader
	out  []byte
	flow flow
	info http1.Info
	body http1.Body // of the request

	m     *manager
	close bool // after this response
	gone  bool // the client has closed
	// readArmed and writeArmed are when the deadlines were set last.
	readArmed, writeArmed time.Time
	ctx                   context.Context //nolint:containedctx // of one request
	cancel                context.CancelFunc
}

// run serves requests until one side wants to end.
func (s *h1) run() {
	c := s.conn
	for {
		now := time.Now()
		s.m = c.chain.http
		if c.manager != nil {
			s.m = c.manager
		}
		s.armRead(now, s.m.IdleTimeout)
		if len(s.in.Buffered()) == 0 {
			if !c.state.CompareAndSwap(connActive, connIdle) || c.draining.Load() {
				return
			}
			err := s.in.Fill(http1.BufferSize)
			if !c.state.CompareAndSwap(connIdle, connActive) || err != nil {
				return
			}
		}
		f := &s.flow
		f.reset(&c.info, s.context)
		err := http1.ReadRequest(s.in, &f.x.Request, &s.info, s.m.MaxHeaderBytes, func() {
			s.readArmed = time.Time{}
			s.armRead(time.Now(), s.m.HeaderTimeout)
		})
		if err != nil {
			s.refuse(err)
			return
		}
		s.begin(&f.x)
		compiled := c.engine.now.Load()
		s.m = c.current(compiled)
		s.close = !s.info.KeepAlive
		f.serve(compiled, s.m)
		if s.ctx != nil {
			s.cancel()
			s.ctx, s.cancel = nil, nil
		}
		if s.close || s.gone || !s.discard() {
			return
		}
	}
}

// begin fills in what the head alone does not say.
func (s *h1) begin(x *l7.Exchange) {
	x.Request.Scheme = "http"
	if s.conn.info.TLS != nil {
		x.Request.Scheme = "https"
	}
	x.Request.Trailer, x.Request.Body = nil, nil
	s.body.Reset(s.in, &s.info, x.Request.ContentLength, &x.Request.Trailer)
	if s.info.Chunked || x.Request.ContentLength > 0 {
		x.Request.Body = s
	}
	if s.info.Expect100 {
		s.body.Before = func() error {
			_, err := s.conn.stream.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
			return err
		}
	}
}

// Read reads the request's body.
func (s *h1) Read(p []byte) (int, error) {
	if len(s.in.Buffered()) == 0 {
		s.armRead(time.Now(), s.m.StreamIdleTimeout)
	}
	return s.body.Read(p)
}

// Ready says how much of the body is here.
func (s *h1) Ready() int {
	if s.body.Before != nil {
		return 0
	}
	return s.body.Ready()
}

func (s *h1) armRead(now time.Time, timeout time.Duration) {
	if now.Sub(s.readArmed) < rearmEvery {
		return
	}
	s.readArmed = now
	if timeout <= 0 {
		_ = s.conn.raw.SetReadDeadline(time.Time{})
		return
	}
	_ = s.conn.raw.SetReadDeadline(now.Add(timeout))
}

func (s *h1) armWrite(now time.Time) {
	if now.Sub(s.writeArmed) < rearmEvery || s.m.StreamIdleTimeout <= 0 {
		return
	}
	s.writeArmed = now
	_ = s.conn.raw.SetWriteDeadline(now.Add(s.m.StreamIdleTimeout))
}

// refuse answers what is no request.
func (s *h1) refuse(err error) {
	x := &s.flow.x
	reply := &l7.Reply{Flag: l7.FlagDownstreamProtocol}
	var bad *http1.Error
	switch {
	case errors.As(err, &bad):
		reply.Status, reply.Body, reply.Details = bad.Status, bad.Reason, bad.Reason
	case errors.Is(err, http1.ErrTooLarge):
		reply.Status, reply.Body, reply.Details = 431, "request header too large", "request_headers_too_large"
	case errors.Is(err, os.ErrDeadlineExceeded) && !s.conn.draining.Load():
		reply.Status, reply.Body, reply.Details = 408, "request header not complete in time", "request_header_timeout"
	default:
		return // the client has gone
	}
	s.close = true
	if x.Request.Method == "" {
		x.Request.Method, x.Request.Path = "?", "?"
	}
	x.Request.Header = x.Request.Header[:0]
	s.info.Minor = 1
	s.flow.refuse(s.m, reply)
	s.linger()
}

// discard reads what is left of a request's body, if it is little; false: the
// connection cannot be used again.
func (s *h1) discard() bool {
	if s.body.Done() {
		return true
	}
	if s.body.Before != nil { // the client still waits for 100 Continue
		return false
	}
	var buf [4096]byte
	for range 16 {
		if s.body.Ready() == 0 {
			break
		}
		if _, err := s.body.Read(buf[:]); err != nil {
			break
		}
	}
	if s.body.Done() {
		return true
	}
	s.linger()
	return false
}

// linger lets the client read the response before the rest of its request would
// reset the connection (RFC 9112 §9.6).
func (s *h1) linger() {
	w, ok := s.conn.stream.(interface{ CloseWrite() error })
	if !ok || w.CloseWrite() != nil {
		return
	}
	_ = s.conn.raw.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.CopyN(io.Discard, s.conn.raw, 256<<10)
}

// respond implements responder.
func (s *h1) respond(f *flow) error {
	x := &f.x
	r := &x.Response
	now := time.Now()
	if s.conn.draining.Load() || !r.Local && f.call.Sending() {
		s.close = true
	}
	if r.Local && !s.body.Done() && (s.info.Expect100 || s.body.Left() < 0 || s.body.Left() > 64<<10) {
		s.close = true
	}
	framing := http1.FrameNone
	hasBody := http1.HasBody(x.Request.Method, r.Status) && r.Body != nil
	switch {
	case r.Status/100 == 1 || r.Status == 204:
	case r.ContentLength >= 0:
		framing = http1.FrameLength
	case !hasBody && http1.HasBody(x.Request.Method, r.Status):
		framing, r.ContentLength = http1.FrameLength, 0
	case !hasBody:
	case s.info.Minor == 1:
		framing = http1.FrameChunked
	default:
		framing, s.close = http1.FrameClose, true
	}
	connection := ""
	switch {
	case s.close:
		connection = "close"
	case s.info.Minor == 0:
		connection = "keep-alive"
	}
	s.out = http1.AppendResponse(s.out[:0], r, framing, connection)
	s.armWrite(now)
	if !hasBody || r.ContentLength == 0 {
		_, err := s.conn.stream.Write(s.out)
		return s.wrote(err)
	}
	return s.copyBody(f, framing)
}

func (s *h1) wrote(err error) error {
	if err != nil {
		s.close, s.gone = true, true
		return &clientError{err}
	}
	return nil
}

// clientError says that the client's side of a response broke.
type clientError struct{ err error }

func (e *clientError) Error() string { return e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

// spliceAfter is how much of a body is copied before the kernel moves the rest.
const spliceAfter = 64 << 10

// copyBody sends the head and the body, each piece as soon as it is there.
func (s *h1) copyBody(f *flow, framing http1.Framing) error {
	r := &f.x.Response
	pooled := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(pooled)
	buf := *pooled
	head := s.out
	if len(head) > len(buf)/4 || f.call.Ready() == 0 && !r.Local {
		// Too long to be joined with the first piece, or that piece may take its time.
		if _, err := s.conn.stream.Write(head); err != nil {
			return s.wrote(err)
		}
		head = nil
	}
	left := r.ContentLength
	for {
		// buf: [room for head and size line][data][room for CRLF and last chunk]
		start := len(head) + http1.ChunkHeadRoom
		limit := len(buf) - 64
		end, ended := start, false
		for {
			n, err := r.Body.Read(buf[end:limit])
			end += n
			if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
				ended = true
				break
			}
			if err != nil {
				s.close = true
				return err
			}
			// What is here already goes into the same write.
			if limit-end < 1024 || f.call.Ready() == 0 {
				break
			}
		}
		n := int64(end - start)
		f.x.BytesSent += n
		if framing == http1.FrameLength {
			if left -= n; left < 0 {
				s.close = true
				return errBodyTooLong
			}
			ended = ended || left == 0
			if ended && left > 0 {
				s.close = true
				return io.ErrUnexpectedEOF
			}
		}
		piece := buf[start:end]
		from := start
		if framing == http1.FrameChunked {
			if n > 0 {
				piece = http1.ChunkAround(buf, start, end)
				from = end + http1.ChunkTailRoom - len(piece)
				end += http1.ChunkTailRoom
			}
			if ended && len(r.Trailer) == 0 {
				end += copy(buf[end:], "0\r\n\r\n")
			}
			piece = buf[from:end]
		}
		if len(head) > 0 {
			from -= copy(buf[from-len(head):], head)
			piece = buf[from:end]
			head = nil
		}
		if len(piece) > 0 {
			s.armWrite(time.Now())
			if _, err := s.conn.stream.Write(piece); err != nil {
				return s.wrote(err)
			}
		}
		if ended {
			if framing == http1.FrameChunked && len(r.Trailer) > 0 {
				_, err := s.conn.stream.Write(http1.AppendChunkEnd(nil, r.Trailer))
				return s.wrote(err)
			}
			return nil
		}
		if framing == http1.FrameLength && f.x.BytesSent >= spliceAfter && left > spliceAfter {
			done, err := s.splice(f, &left)
			if done || err != nil {
				return err
			}
		}
	}
}

var errBodyTooLong = errors.New("the body is longer than its Content-Length")

// splice lets the kernel move the rest of a body between two sockets.
func (s *h1) splice(f *flow, left *int64) (done bool, err error) {
	to, ok := s.conn.stream.(*net.TCPConn)
	if !ok {
		return false, nil
	}
	for *left > 0 {
		from, n, ok := f.call.Splice()
		if !ok {
			return false, nil
		}
		now := time.Now()
		s.armWrite(now)
		if s.m.StreamIdleTimeout > 0 {
			_ = from.SetReadDeadline(now.Add(s.m.StreamIdleTimeout))
		}
		moved, err := to.ReadFrom(&io.LimitedReader{R: from, N: min(n, 1<<20)})
		f.call.Spliced(moved)
		f.x.BytesSent += moved
		*left -= moved
		if err == nil && moved == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			s.close = true
			return true, err
		}
	}
	return true, nil
}

// context implements responder: it is made only if somebody asks.
func (s *h1) context() context.Context {
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(s.conn.engine.ctx)
	}
	return s.ctx
}

// interrupt implements responder.
func (s *h1) interrupt() {
	s.close = true
	_ = s.conn.raw.SetReadDeadline(time.Unix(1, 0))
}

// watch implements responder: a goroutine reads from the client while an endpoint
// takes its time. What it reads is the next request; an end is the client's.
func (s *h1) watch(abort func()) (stop func()) {
	if !s.body.Done() || len(s.in.Buffered()) > 0 {
		return nil
	}
	_ = s.conn.raw.SetReadDeadline(time.Time{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.in.Fill(http1.BufferSize); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			s.gone = true
			if s.cancel != nil {
				s.cancel()
			}
			abort()
		}
	}()
	return func() {
		_ = s.conn.raw.SetReadDeadline(time.Unix(1, 0))
		<-done
		s.readArmed = time.Time{}
		s.armRead(time.Now(), s.m.IdleTimeout)
	}
}

// abort implements responder: the client must not take a part for the whole.
func (s *h1) abort() {
	s.close = true
	if t, ok := s.conn.raw.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = s.conn.raw.Close()
}

// upgrade implements responder.
func (s *h1) upgrade(f *flow, conn *upstream.Call) error {
	s.close = true
	s.out = http1.AppendResponse(s.out[:0], &f.x.Response, http1.FrameNone, "Upgrade")
	if _, err := s.conn.stream.Write(s.out); err != nil {
		return s.wrote(err)
	}
	to, buffered := conn.Hijack()
	_ = s.conn.raw.SetDeadline(time.Time{})
	p := &pipe{
		client: s.conn.stream, clientFirst: s.in.Buffered(), server: to, serverFirst: buffered,
		idle: f.idle(),
	}
	p.run()
	f.x.BytesReceived, f.x.BytesSent = p.received, p.sent
	return nil
}

var _ responder = (*h1)(nil)
