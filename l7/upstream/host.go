package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
)

const (
	defaultConnectTimeout = 10 * time.Second
	defaultIdleTimeout    = 90 * time.Second
	// checkAfter is how long a connection may be idle before it is looked at whether
	// the other side has closed it: less is not worth the system call.
	checkAfter = 5 * time.Millisecond
)

// A host is an endpoint with its connections.
type host struct {
	*balance.Host
	cluster *Cluster
	address string

	mu      sync.Mutex // guards the following
	idle    []*h1Conn  // the last one was used last
	h2      []*h2Conn
	dialing chan struct{} // closed when the dialing of an HTTP/2 connection has ended; nil: none
	timer   *time.Timer   // closes idle connections; nil: not armed
	retired bool
}

func newHost(c *Cluster, e *l7.Endpoint) *host {
	return &host{Host: balance.NewHost(e), cluster: c, address: e.Address}
}

// takeIdle returns the connection that was used last, or nil.
func (h *host) takeIdle(now time.Time, t *transport) *h1Conn {
	for {
		h.mu.Lock()
		n := len(h.idle)
		if n == 0 {
			h.mu.Unlock()
			return nil
		}
		c := h.idle[n-1]
		h.idle[n-1] = nil
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		idle := now.Sub(c.since)
		if c.transport != t || idle > t.idleTimeout || idle > checkAfter && !alive(c.raw) {
			c.close()
			continue
		}
		c.reused = true
		return c
	}
}

func (h *host) hasIdle() bool { return h.idleCount() > 0 }

func (h *host) idleCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

func (h *host) closeOneIdle() bool {
	h.mu.Lock()
	if len(h.idle) == 0 {
		h.mu.Unlock()
		return false
	}
	c := h.idle[0]
	h.idle = append(h.idle[:0], h.idle[1:]...)
	h.mu.Unlock()
	c.close()
	return true
}

// putIdle takes a connection that can be used again.
func (h *host) putIdle(c *h1Conn, now time.Time) {
	c.since = now
	h.mu.Lock()
	if h.retired {
		h.mu.Unlock()
		c.close()
		return
	}
	h.idle = append(h.idle, c)
	if h.timer == nil {
		h.timer = time.AfterFunc(c.transport.idleTimeout, h.expire)
	}
	h.mu.Unlock()
	h.cluster.wake()
}

// expire closes what has been idle for too long and comes again if something is left.
func (h *host) expire() {
	now := time.Now()
	h.mu.Lock()
	n := 0
	for n < len(h.idle) && now.Sub(h.idle[n].since) >= h.idle[n].transport.idleTimeout {
		n++
	}
	old := append([]*h1Conn(nil), h.idle[:n]...)
	h.idle = append(h.idle[:0], h.idle[n:]...)
	clear(h.idle[len(h.idle):cap(h.idle)])
	h.timer = nil
	if len(h.idle) > 0 {
		first := h.idle[0]
		h.timer = time.AfterFunc(max(first.transport.idleTimeout-now.Sub(first.since), time.Second), h.expire)
	}
	h.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// retire closes idle connections, and the others when they are given back.
func (h *host) retire() {
	h.mu.Lock()
	h.retired = true
	idle, h2 := h.idle, h.h2
	h.idle, h.h2 = nil, nil
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	h.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	for _, c := range h2 {
		c.retire()
	}
}

// connect opens a connection for HTTP/1 or TCP.
func (h *host) connect(ctx context.Context, s *state) (*connection, error) {
	if err := h.cluster.openConnection(ctx, s, h); err != nil {
		return nil, err
	}
	c, err := s.transport.dial(ctx, h.cluster, h.Endpoint())
	if err != nil {
		h.cluster.closedConnection()
		return nil, &Failure{Connect, err}
	}
	return c, nil
}
