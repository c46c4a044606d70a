package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
)

// slowAfter is how long a response may take before the client is watched.
const slowAfter = 200 * time.Millisecond

// A Call is one request to a cluster, over all its tries. It is reused.
type Call struct {
	// Request is what is sent, Response where the response's head and body go.
	Request  *l7.Request
	Response *l7.Response
	// Choice is for the balancer, Destination for clusters of the original destination.
	Choice      balance.Choice
	Destination netip.AddrPort
	// Deadline of this try; zero: none. Idle is the longest wait for a byte; zero: none.
	Deadline time.Time
	Idle     time.Duration
	// HTTP2 asks for it where the cluster leaves the choice.
	HTTP2 bool
	// Context ends when the client has gone. It is asked only by what needs one.
	Context func() context.Context
	// Slow is called when the response takes its time: it watches the client, and
	// calls abort when the client has gone. It returns what ends the watch. May be nil.
	Slow func(abort func()) (stop func())
	// Interrupt ends a Read of Request.Body that is under way; nil: it ends by itself.
	Interrupt func()
	// Avoid says that hosts that were tried are not to be chosen again.
	Avoid bool
	// Fresh asks for a connection that was not used before: one that was has failed,
	// and others of its age may be as dead.
	Fresh bool
	// HostOfEndpoint makes the endpoint's host name the request's authority.
	HostOfEndpoint bool

	// What happened; valid after RoundTrip.
	Endpoint *l7.Endpoint
	Peer     *l7.Peer
	// Unsent says that no byte of the request has left.
	Unsent bool

	cluster *Cluster
	host    *host
	tried   []*host
	h1      *h1Conn
	h2      h2Call
	started bool
}

// Reset makes a call ready for another request; buffers are kept.
func (c *Call) Reset() {
	clear(c.tried)
	*c = Call{tried: c.tried[:0]}
}

// RoundTrip chooses an endpoint, sends the request, and returns when the head of the
// response is there; the body is in Response. Finish must follow, whatever is returned.
// The error is a *Failure.
func (cl *Cluster) RoundTrip(c *Call) error {
	s := cl.state.Load()
	now := time.Now()
	choice := c.Choice
	var tried []*host
	if c.Avoid {
		tried = c.tried
	}
	h := cl.pick(s, now, &choice, tried, c.Destination)
	if h == nil {
		return &Failure{NoEndpoint, errNoEndpoint}
	}
	c.cluster, c.host, c.Endpoint, c.Peer, c.Unsent = cl, h, h.Endpoint(), nil, true
	c.tried = append(c.tried, h)
	if c.HostOfEndpoint {
		if c.Request.Authority = c.Endpoint.Hostname; c.Request.Authority == "" {
			c.Request.Authority = h.address
		}
	}
	h.Active.Add(1)
	c.started = true
	var err error
	if c.wantsHTTP2(s) {
		err = c.roundTrip2(s)
	} else {
		err = c.roundTrip1(s, now)
	}
	if err == nil {
		cl.result(h, c.Response.Status)
		return nil
	}
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Reset, err}
	}
	switch f.Kind {
	case Connect, Reset, Timeout, Protocol:
		cl.result(h, 0)
	}
	return f
}

func (c *Call) wantsHTTP2(s *state) bool {
	if c.Request.Upgrade != "" {
		return false
	}
	switch s.config.Protocol {
	case l7.ProtocolHTTP2:
		return true
	case l7.ProtocolDownstream:
		return c.HTTP2
	case l7.ProtocolALPN:
		return s.transport.tlsOf(c.Endpoint) != nil
	default:
		return false
	}
}

// Finish gives the connection back, or closes it if the message on it is not
// complete. It returns false if the request's body was not read to its end.
func (c *Call) Finish() bool {
	if !c.started {
		return true
	}
	c.started = false
	c.host.Active.Add(-1)
	if c.h1 != nil {
		conn := c.h1
		c.h1 = nil
		return conn.finish(c)
	}
	return c.h2.finish()
}

// Sending reports whether the body of the request is still being sent.
func (c *Call) Sending() bool {
	return c.h1 != nil && c.h1.sender != nil && !c.h1.sender.ended()
}

// Splice returns the connection under the response's body, how many bytes it will
// still deliver, and true if they can be moved by the kernel: nothing is buffered,
// nothing has to be decoded.
func (c *Call) Splice() (*net.TCPConn, int64, bool) {
	if c.h1 == nil {
		return nil, 0, false
	}
	raw, ok := c.h1.raw.(*net.TCPConn)
	left := c.h1.body.Left()
	if !ok || left <= 0 || len(c.h1.in.Buffered()) > 0 || c.Response.Body != io.Reader(c.h1) {
		return nil, 0, false
	}
	return raw, left, true
}

// Spliced tells that n bytes were moved.
func (c *Call) Spliced(n int64) { c.h1.body.Took(n) }

// Ready returns how much of the body can be read without waiting.
func (c *Call) Ready() int {
	if c.h1 != nil && c.Response.Body == io.Reader(c.h1) {
		return c.h1.body.Ready()
	}
	return 0
}

// Hijack takes the connection after a response of 101: bytes both ways. buffered came
// after the head.
func (c *Call) Hijack() (conn net.Conn, buffered []byte) {
	h := c.h1
	if h == nil {
		return nil, nil
	}
	h.hijacked = true
	_ = h.raw.SetDeadline(time.Time{})
	return h.raw, h.in.Buffered()
}

// SetDeadline moves the deadline when the response has begun; zero: none.
func (c *Call) SetDeadline(t time.Time) {
	if t.Equal(c.Deadline) {
		return
	}
	c.Deadline = t
	switch {
	case c.h1 != nil:
		c.h1.deadline = t
		c.h1.armed = time.Time{}
	case c.h2.until != nil:
		if t.IsZero() {
			c.h2.until.Stop()
		} else {
			c.h2.until.Reset(time.Until(t))
		}
	}
}

func (c *Call) clientContext() context.Context {
	if c.Context == nil {
		return context.Background()
	}
	return c.Context()
}

// context returns one that ends at the deadline too; for making connections.
func (c *Call) context() (context.Context, context.CancelFunc) {
	if c.Deadline.IsZero() {
		return context.WithCancel(c.clientContext())
	}
	return context.WithDeadline(c.clientContext(), c.Deadline)
}
