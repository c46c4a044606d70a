package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/periplus/periplus/l7"
)

// An h2Conn is an HTTP/2 connection to an endpoint, used by many requests.
type h2Conn struct {
	*http2.ClientConn
	conn      *connection
	transport *transport
}

func (c *h2Conn) retire() {
	c.SetDoNotReuse()
	// Streams that are open end first.
	go func() { _ = c.Shutdown(context.Background()) }()
}

// h2Call is the part of a Call that is under way on HTTP/2.
type h2Call struct {
	cancel context.CancelFunc
	body   io.ReadCloser
	timer  *time.Timer // of idle; nil: none
	idle   time.Duration
	until  *time.Timer // of the deadline; nil: none
	resp   *http.Response
	out    *l7.Response
	ended  bool
}

func (c *Call) wantsALPN(s *state) bool { return s.config.Protocol == l7.ProtocolALPN }

// counted tells the cluster when a connection has been closed.
type counted struct {
	*connection
	cluster *Cluster
	once    sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(c.cluster.closedConnection)
	return c.connection.Close()
}

// roundTrip2 sends the request over HTTP/2.
func (c *Call) roundTrip2(s *state) error {
	ctx, cancel := c.context()
	conn, err := c.host.takeH2(ctx, s)
	cancel()
	if err != nil {
		if errors.Is(err, errNotHTTP2) {
			return c.roundTrip1(s, time.Now())
		}
		return err
	}
	return c.send2(conn)
}

// adopt2 uses a connection that turned out to speak HTTP/2.
func (c *Call) adopt2(s *state, made *connection) error {
	conn, err := c.host.addH2(s, made)
	if err != nil {
		return err
	}
	return c.send2(conn)
}

// errNotHTTP2 says that TLS has chosen HTTP/1.1.
var errNotHTTP2 = errors.New("the endpoint speaks HTTP/1.1")

// takeH2 returns a connection that can take one more request, which is reserved.
func (h *host) takeH2(ctx context.Context, s *state) (*h2Conn, error) {
	for {
		h.mu.Lock()
		kept := h.h2[:0]
		var found *h2Conn
		for _, c := range h.h2 {
			if state := c.State(); state.Closed || state.Closing || c.transport != s.transport {
				if c.transport != s.transport {
					c.retire()
				}
				continue
			}
			kept = append(kept, c)
			if found == nil && c.ReserveNewRequest() {
				found = c
			}
		}
		h.h2 = kept
		if found != nil {
			h.mu.Unlock()
			return found, nil
		}
		if wait := h.dialing; wait != nil {
			h.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, &Failure{Timeout, ctx.Err()}
			}
		}
		if s.config.Protocol == l7.ProtocolALPN && len(h.idle) > 0 {
			h.mu.Unlock()
			return nil, errNotHTTP2 // as it said before
		}
		h.dialing = make(chan struct{})
		h.mu.Unlock()
		made, err := h.connect(ctx, s)
		var c *h2Conn
		if err == nil {
			if made.tls != nil && made.tls.NegotiatedProtocol != "h2" && s.config.Protocol != l7.ProtocolHTTP2 &&
				(s.config.Protocol != l7.ProtocolDownstream || !l7.PrivateALPN(made.tls.NegotiatedProtocol)) {
				h.putIdle(h.newH1(made, s.transport), time.Now())
				err = errNotHTTP2
			} else {
				c, err = h.addH2(s, made)
			}
		}
		h.mu.Lock()
		close(h.dialing)
		h.dialing = nil
		h.mu.Unlock()
		if errors.Is(err, errIdleAgain) {
			continue
		}
		return c, err
	}
}

// addH2 begins HTTP/2 on a connection and reserves one request.
func (h *host) addH2(s *state, made *connection) (*h2Conn, error) {
	cc, err := s.transport.h2.NewClientConn(&counted{connection: made, cluster: h.cluster})
	if err != nil {
		_ = made.Close()
		return nil, &Failure{Connect, err}
	}
	c := &h2Conn{ClientConn: cc, conn: made, transport: s.transport}
	c.ReserveNewRequest()
	h.mu.Lock()
	retired := h.retired
	if !retired {
		h.h2 = append(h.h2, c)
	}
	h.mu.Unlock()
	if retired {
		c.retire()
	}
	return c, nil
}

// send2 sends the request and waits for the head of the response. Its context has no
// deadline, since a deadline may be moved when the response begins.
func (c *Call) send2(conn *h2Conn) error {
	ctx, cancel := context.WithCancel(c.clientContext())
	c.Peer, c.Unsent = conn.conn.peer, false
	c.h2 = h2Call{cancel: cancel, idle: c.Idle, out: c.Response}
	var late atomic.Bool
	expire := func() { late.Store(true); cancel() }
	if c.Idle > 0 {
		c.h2.timer = time.AfterFunc(c.Idle, expire)
	}
	if !c.Deadline.IsZero() {
		c.h2.until = time.AfterFunc(time.Until(c.Deadline), expire)
	}
	resp, err := conn.RoundTrip(toHTTP(ctx, c.Request)) //nolint:bodyclose // the caller does, with the call
	if err != nil {
		var stream http2.StreamError
		switch {
		case errors.As(err, &stream) && stream.Code == http2.ErrCodeRefusedStream, unprocessed(err):
			return &Failure{Refused, err}
		case late.Load(), errors.Is(err, context.DeadlineExceeded):
			return &Failure{Timeout, err}
		case errors.Is(err, context.Canceled):
			return &Failure{Client, err}
		default:
			return &Failure{Reset, err}
		}
	}
	c.h2.resp, c.h2.body = resp, resp.Body
	r := c.Response
	r.Status, r.ContentLength, r.Trailer = resp.StatusCode, resp.ContentLength, nil
	r.Header = FromHTTP(r.Header[:0], resp.Header)
	r.Body = &c.h2
	if len(resp.Trailer) > 0 && resp.ContentLength > 0 {
		// HTTP/1 has no trailer after a body of known length.
		r.ContentLength = -1
	}
	for name := range resp.Trailer {
		r.Header.Add("Trailer", name)
	}
	if resp.Body == http.NoBody || resp.ContentLength == 0 && len(resp.Trailer) == 0 {
		r.Body = nil
		c.h2.ended = true
	}
	return nil
}

// unprocessed recognizes the two errors for which x/net/http2 has no type.
func unprocessed(err error) bool {
	s := err.Error()
	return strings.Contains(s, "graceful shutdown GOAWAY") || strings.Contains(s, "client conn not usable")
}

// Read reads the body of the response and, at its end, the trailer.
func (h *h2Call) Read(p []byte) (int, error) {
	if h.timer != nil {
		h.timer.Reset(h.idle)
	}
	n, err := h.body.Read(p)
	if err == io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
		h.ended = true
		h.out.Trailer = FromHTTP(nil, h.resp.Trailer)
	}
	return n, err
}

func (h *h2Call) finish() bool {
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.until != nil {
		h.until.Stop()
	}
	if h.body != nil {
		_ = h.body.Close()
	}
	if h.cancel != nil {
		h.cancel()
	}
	*h = h2Call{}
	return true
}

// toHTTP makes the request that x/net/http2 wants.
func toHTTP(ctx context.Context, r *l7.Request) *http.Request {
	u := &url.URL{Scheme: r.Scheme, Host: r.Authority}
	if strings.HasPrefix(r.Path, "//") || r.Path == "" {
		path, query, has := strings.Cut(r.Path, "?")
		u.RawQuery, u.ForceQuery = query, has && query == ""
		u.RawPath = path
		u.Path, _ = url.PathUnescape(path)
	} else {
		u.Opaque = r.Path // as it came
	}
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	q := &http.Request{
		Method: r.Method, URL: u, Host: r.Authority, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: ToHTTP(r.Header), ContentLength: r.ContentLength,
	}
	if _, ok := q.Header["User-Agent"]; !ok {
		q.Header["User-Agent"] = nil // not ours
	}
	if r.Body != nil {
		q.Body = io.NopCloser(r.Body)
	} else {
		q.ContentLength = 0
	}
	if len(r.Trailer) > 0 {
		q.Trailer = ToHTTP(r.Trailer)
	}
	return q.WithContext(ctx)
}

// ToHTTP makes a map of a header, with canonical names.
func ToHTTP(h l7.Header) http.Header {
	out := make(http.Header, len(h)+1)
	for _, f := range h {
		k := textproto.CanonicalMIMEHeaderKey(f.Name)
		out[k] = append(out[k], f.Value)
	}
	return out
}

// FromHTTP appends the fields of a map, in no order.
func FromHTTP(to l7.Header, h http.Header) l7.Header {
	for k, values := range h {
		for _, v := range values {
			to = append(to, l7.Field{Name: k, Value: v})
		}
	}
	return to
}
