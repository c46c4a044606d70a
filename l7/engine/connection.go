package engine

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
)

// What a connection is doing, for draining.
const (
	connActive  int32 = iota // a request, a handshake, or TCP
	connIdle                 // waits for a request: may be closed at once
	connClosing              // told to end
)

// handshakeTimeout bounds TLS handshakes and PROXY headers.
const handshakeTimeout = 15 * time.Second

// A conn is one connection from a client.
type conn struct {
	engine   *Engine
	listener *listener
	raw      net.Conn
	// stream is raw, or TLS over it, or with the bytes before it that were looked at.
	stream net.Conn
	front  *front
	chain  *chain
	info   l7.Connection

	state    atomic.Int32
	draining atomic.Bool
	// seen and manager are the snapshot of the last request and what it says about
	// this connection's chain; used by the goroutine of the connection only (HTTP/1)
	// or under mu (HTTP/2).
	mu      sync.Mutex
	seen    *compiled
	manager *manager

	ended   atomic.Bool
	onDrain func() // of HTTP/2; set before it can be called
}

// serve is the life of a connection.
func (c *conn) serve() {
	defer c.listener.remove(c)
	defer func() {
		c.ended.Store(true)
		_ = c.raw.Close()
	}()
	stop := context.AfterFunc(c.engine.ctx, c.cut)
	defer stop()
	c.info.Opened = time.Now()
	if err := c.begin(); err != nil {
		c.engine.cfg.Log.Debug("Connection ended before its first request", base.KeyAddress, c.info.Remote.String(), base.KeyError, err)
		return
	}
	if c.chain == nil {
		c.engine.cfg.Log.Debug("No filter chain for connection", base.KeyAddress, c.info.Remote.String(), "to", c.info.Destination.String(), "serverName", c.info.ServerName)
		return
	}
	for _, f := range c.chain.config.Connection {
		if err := f.Connection(&c.info); err != nil {
			c.denied(err)
			return
		}
	}
	if c.chain.http != nil {
		c.serveHTTP()
	} else {
		c.serveTCP()
	}
}

// begin finds the addresses, the chain, and makes TLS.
func (c *conn) begin() error {
	c.info.Remote, c.info.Local = addrOf(c.raw.RemoteAddr()), addrOf(c.raw.LocalAddr())
	c.info.Destination = c.info.Local
	c.stream = c.raw
	now := c.engine.now.Load()
	f := now.listeners[c.listener.name]
	if f == nil {
		return net.ErrClosed
	}
	var first []byte
	if f.config.ProxyProtocol {
		_ = c.raw.SetReadDeadline(c.info.Opened.Add(handshakeTimeout))
		from, to, rest, err := proxyHeader(c.raw)
		if err != nil {
			return err
		}
		first = rest
		if from.IsValid() {
			c.info.Remote, c.info.Local, c.info.Destination = from, to, to
		}
	}
	if f.config.HandOff || f.destination {
		to, err := c.engine.cfg.OriginalDestination(c.raw)
		if err != nil {
			return err
		}
		c.info.Destination = to
		if f.config.HandOff {
			if other := now.handOff(to); other != nil {
				f = other
			}
		}
	}
	c.front = f
	c.info.Listener = f.config
	var h hello
	if f.peek {
		timeout := f.config.InspectTimeout
		if timeout == 0 {
			timeout = handshakeTimeout
		}
		_ = c.raw.SetReadDeadline(time.Now().Add(timeout))
		h, first = inspect(&peeked{c.raw, first})
		c.info.ServerName = h.serverName
	}
	if f.peek || f.config.ProxyProtocol {
		_ = c.raw.SetReadDeadline(time.Time{})
	}
	if len(first) > 0 {
		c.stream = &peeked{c.raw, first}
	}
	c.chain = f.choose(&h, c.info.Destination, c.info.Remote)
	if c.chain == nil {
		return nil
	}
	c.info.Chain = c.chain.config
	if c.chain.tls == nil {
		return nil
	}
	if f.peek && !h.tls {
		return errPlainText
	}
	secure := tls.Server(c.stream, c.chain.tls)
	ctx, cancel := context.WithTimeout(c.engine.ctx, handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	state := secure.ConnectionState()
	c.stream, c.info.TLS, c.info.Peer = secure, &state, l7.PeerOf(&state)
	c.info.ServerName = state.ServerName
	return nil
}

var errPlainText = plainTextError{}

type plainTextError struct{}

func (plainTextError) Error() string { return "plain text where TLS is spoken" }

func addrOf(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}

// drain tells a connection to end after what it is doing.
func (c *conn) drain() {
	c.draining.Store(true)
	if c.state.CompareAndSwap(connIdle, connClosing) {
		_ = c.raw.SetReadDeadline(time.Unix(1, 0))
	}
	c.mu.Lock()
	tell := c.onDrain
	c.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// cut ends a connection at once.
func (c *conn) cut() { _ = c.raw.Close() }

// denied records what a connection filter has refused.
func (c *conn) denied(err error) {
	c.info.Flags |= l7.FlagDenied
	c.info.Details = err.Error()
	c.info.Duration = time.Since(c.info.Opened)
	c.engine.cfg.Log.Debug("Connection refused by a filter", base.KeyAddress, c.info.Remote.String(), base.KeyError, err)
	if t := c.chain.config.TCP; t != nil {
		for _, o := range t.Observers {
			o.Closed(&c.info)
		}
	}
}

// current returns the connection manager that the newest snapshot has for this
// connection. When its listener or chain is gone, the old one serves on.
func (c *conn) current(now *compiled) *manager {
	if c.seen == now {
		return c.manager
	}
	c.seen = now
	if c.manager == nil {
		c.manager = c.chain.http
	}
	f := now.listeners[c.front.config.Name]
	if f == nil || f == c.front {
		return c.manager
	}
	for _, n := range f.all() {
		if n.config.Name == c.chain.config.Name && n.http != nil {
			c.front, c.chain, c.manager = f, n, n.http
			c.info.Listener, c.info.Chain = f.config, n.config
			break
		}
	}
	return c.manager
}
