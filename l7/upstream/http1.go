package upstream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/http1"
)

// maxResponseHead bounds the head of a response.
const maxResponseHead = 256 << 10

// An h1Conn is an HTTP/1.1 connection to an endpoint. One request at a time uses it.
type h1Conn struct {
	raw       net.Conn
	peer      *l7.Peer
	host      *host
	transport *transport
	in        *http1.Reader
	out       []byte
	body      http1.Body // of the response
	info      http1.Info
	since     time.Time // idle since
	reused    bool
	hijacked  bool
	requests  int

	// Of the request under way.
	idle     time.Duration
	deadline time.Time
	armed    time.Time // when the read deadline was set last
	sender   *sender
}

// A sender sends a request's body beside the reading of the response.
type sender struct {
	done   chan struct{}
	last   atomic.Bool // the last bytes of the body are on their way
	err    error       // valid after done
	client bool        // err is the client's
}

// lastBytes is how long the sender may take for what is left when the response is there.
const lastBytes = 100 * time.Millisecond

// ended reports whether the whole body has been sent. An endpoint may answer before the
// sender has seen its last write return: for that, and nothing longer, it is waited for.
func (s *sender) ended() bool {
	select {
	case <-s.done:
		return true
	default:
	}
	if !s.last.Load() {
		return false
	}
	t := time.NewTimer(lastBytes)
	defer t.Stop()
	select {
	case <-s.done:
		return true
	case <-t.C:
		return false
	}
}

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// roundTrip1 sends the request over HTTP/1.1.
func (c *Call) roundTrip1(s *state, now time.Time) error {
	fresh := c.Fresh
	for {
		var conn *h1Conn
		if !fresh {
			conn = c.host.takeIdle(now, s.transport)
		}
		if conn == nil {
			ctx, cancel := c.context()
			made, err := c.host.connect(ctx, s)
			cancel()
			if err == errIdleAgain { //nolint:errorlint // not wrapped
				now, fresh = time.Now(), false
				continue
			}
			if err != nil {
				return err
			}
			if made.tls != nil && made.tls.NegotiatedProtocol == "h2" && c.wantsALPN(s) {
				return c.adopt2(s, made)
			}
			conn = c.host.newH1(made, s.transport)
		}
		c.h1, c.Peer = conn, conn.peer
		return conn.roundTrip(c)
	}
}

func (h *host) newH1(c *connection, t *transport) *h1Conn {
	return &h1Conn{raw: c.Conn, peer: c.peer, host: h, transport: t, in: http1.NewReader(c.Conn, nil)}
}

func (h *h1Conn) close() {
	_ = h.raw.Close()
	h.host.cluster.closedConnection()
}

func (h *h1Conn) roundTrip(c *Call) error {
	h.requests++
	h.idle, h.deadline = c.Idle, c.Deadline
	if err := h.send(c); err != nil {
		return h.failure(c, err, false)
	}
	return h.receive(c)
}

// send writes the head, with the body if all of it is there.
func (h *h1Conn) send(c *Call) error {
	r := c.Request
	h.out = http1.AppendRequest(h.out[:0], r)
	if r.Body == nil {
		_, err := h.write(h.out)
		c.Unsent = err != nil
		return err
	}
	if n := r.ContentLength; n > 0 && n <= 32<<10 && ready(r.Body) >= int(n) {
		at := len(h.out)
		h.out = append(h.out, make([]byte, n)...)
		if _, err := io.ReadFull(r.Body, h.out[at:]); err != nil {
			return &Failure{Client, err}
		}
		_, err := h.write(h.out)
		c.Unsent = err != nil
		return err
	}
	if _, err := h.write(h.out); err != nil {
		return err
	}
	c.Unsent = false
	h.sender = &sender{done: make(chan struct{})}
	go h.sendBody(r, h.sender)
	return nil
}

// ready says how many bytes of a body can be read at once.
func ready(r io.Reader) int {
	if b, ok := r.(interface{ Ready() int }); ok {
		return b.Ready()
	}
	return 0
}

// write writes with the deadline of the try, if there is one.
func (h *h1Conn) write(b []byte) (int, error) {
	if !h.deadline.IsZero() {
		_ = h.raw.SetWriteDeadline(h.deadline)
	}
	return h.raw.Write(b)
}

// sendBody copies the request's body. A broken body breaks the connection: the
// endpoint must not take a part for the whole.
func (h *h1Conn) sendBody(r *l7.Request, s *sender) {
	defer close(s.done)
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	chunked := r.ContentLength < 0
	room := (*buf)[http1.ChunkHeadRoom : len(*buf)-http1.ChunkTailRoom]
	left := r.ContentLength
	for {
		n, err := r.Body.Read(room)
		if n > 0 {
			data := room[:n]
			if chunked {
				data = http1.ChunkAround(*buf, http1.ChunkHeadRoom, http1.ChunkHeadRoom+n)
			} else if left -= int64(n); left < 0 {
				s.err, s.client = errors.New("the body is longer than its Content-Length"), true
				_ = h.raw.Close()
				return
			} else if left == 0 {
				s.last.Store(true)
			}
			if _, err := h.write(data); err != nil {
				s.err = err
				return
			}
		}
		if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
			break
		}
		if err != nil {
			s.err, s.client = err, true
			_ = h.raw.Close()
			return
		}
	}
	if chunked {
		s.last.Store(true)
		_, s.err = h.write(http1.AppendChunkEnd(nil, r.Trailer))
	} else if left > 0 {
		s.err, s.client = io.ErrUnexpectedEOF, true
		_ = h.raw.Close()
	}
}

// receive reads the head of the response.
func (h *h1Conn) receive(c *Call) error {
	now := time.Now()
	limit := h.readLimit(now)
	first := limit
	slow := c.Slow
	if slow != nil && (limit.IsZero() || limit.Sub(now) > slowAfter) {
		first = now.Add(slowAfter)
	}
	_ = h.raw.SetReadDeadline(first)
	h.armed = now
	var stop func()
	for {
		err := http1.ReadResponse(h.in, c.Request.Method, c.Response, &h.info, maxResponseHead)
		if err == nil {
			if c.Response.Status/100 == 1 && c.Response.Status != 101 {
				continue // interim responses end here
			}
			break
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && first != limit {
			// Slow, but not too slow: from now on the client's end is noticed too.
			first = limit
			_ = h.raw.SetReadDeadline(limit)
			stop = slow(func() { _ = h.raw.Close() })
			continue
		}
		if stop != nil {
			stop()
		}
		return h.failure(c, err, true)
	}
	if stop != nil {
		stop()
	}
	if first != limit {
		// Whoever reads the body sets the next one.
		h.armed = time.Time{}
	}
	r := c.Response
	r.Trailer = nil
	h.body.Reset(h.in, &h.info, r.ContentLength, &r.Trailer)
	r.Body = h
	if !http1.HasBody(c.Request.Method, r.Status) || r.ContentLength == 0 {
		r.Body = nil
	}
	if r.Body == nil {
		h.body.Reset(h.in, &http1.Info{}, 0, nil)
	}
	return nil
}

// readLimit returns until when the next byte must have come; zero: any time.
func (h *h1Conn) readLimit(now time.Time) time.Time {
	limit := h.deadline
	if h.idle > 0 {
		if idle := now.Add(h.idle); limit.IsZero() || idle.Before(limit) {
			limit = idle
		}
	}
	return limit
}

// armEvery is how stale a read deadline may become, so that not every read sets one.
const armEvery = 500 * time.Millisecond

// Read reads the body of the response.
func (h *h1Conn) Read(p []byte) (int, error) {
	if len(h.in.Buffered()) == 0 {
		if now := time.Now(); now.Sub(h.armed) > armEvery {
			h.armed = now
			_ = h.raw.SetReadDeadline(h.readLimit(now))
		}
	}
	return h.body.Read(p)
}

// failure says what an error means.
func (h *h1Conn) failure(c *Call, err error, sent bool) error {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	if s := h.sender; s != nil {
		select {
		case <-s.done:
			if s.client {
				return &Failure{Client, s.err}
			}
		default:
		}
	}
	var bad *http1.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Failure{Timeout, err}
	case errors.As(err, &bad), errors.Is(err, http1.ErrTooLarge):
		return &Failure{Protocol, err}
	case h.reused && (!sent || len(h.in.Buffered()) == 0 && !errors.Is(err, io.ErrUnexpectedEOF)):
		return &Failure{Stale, err}
	default:
		return &Failure{Reset, err}
	}
}

// finish puts the connection into the pool, or closes it.
func (h *h1Conn) finish(c *Call) bool {
	if h.hijacked {
		h.host.cluster.closedConnection()
		return true
	}
	complete, whole := h.body.Done(), true
	if s := h.sender; s != nil {
		h.sender = nil
		if !s.ended() {
			// The response is there and the request is not: neither can go on.
			_ = h.raw.Close()
			if c.Interrupt != nil {
				c.Interrupt()
			}
			<-s.done
			whole, complete = false, false
		}
		if s.err != nil {
			whole, complete = whole && !s.client, false
		}
	}
	limit := h.transport.config.MaxRequestsPerConnection
	if !complete || !h.info.KeepAlive || limit > 0 && h.requests >= limit || len(h.in.Buffered()) > 0 {
		h.close()
		return whole
	}
	if !h.deadline.IsZero() {
		_ = h.raw.SetWriteDeadline(time.Time{})
	}
	if cap(h.out) > 16<<10 {
		h.out = nil
	}
	h.info = http1.Info{}
	h.body.Reset(h.in, &http1.Info{}, 1, nil) // not done before the next response
	h.host.putIdle(h, time.Now())
	return whole
}
