package engine

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
)

// A listener is an open socket.
type listener struct {
	engine  *Engine
	name    string
	address string
	socket  net.Listener

	mu       sync.Mutex // guards the following
	conns    map[*conn]struct{}
	draining bool
}

const maxAcceptDelay = time.Second

// accept serves connections until the socket is closed.
func (l *listener) accept() {
	var delay time.Duration
	for {
		raw, err := l.socket.Accept()
		if err == nil {
			delay = 0
			c := &conn{engine: l.engine, listener: l, raw: raw}
			if l.add(c) {
				go c.serve()
			} else {
				_ = raw.Close()
			}
			continue
		}
		if errors.Is(err, net.ErrClosed) || l.ended() {
			return
		}
		// Too many open files, usually: connections have to end first.
		if delay == 0 {
			l.engine.cfg.Log.Warn("Connections cannot be accepted", base.KeyName, l.name, base.KeyError, err)
		}
		delay = min(max(2*delay, 5*time.Millisecond), maxAcceptDelay)
		wait := time.NewTimer(delay)
		select {
		case <-wait.C:
		case <-l.engine.ctx.Done():
		}
		wait.Stop()
	}
}

func (l *listener) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

func (l *listener) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return false
	}
	l.conns[c] = struct{}{}
	l.engine.all.Add(1)
	return true
}

func (l *listener) remove(c *conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	l.engine.all.Done()
}

// drain closes the socket and lets connections end with what they are doing.
func (l *listener) drain() {
	_ = l.socket.Close()
	l.mu.Lock()
	l.draining = true
	conns := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.drain()
	}
	if len(conns) == 0 {
		return
	}
	// Those that go on for too long are cut.
	time.AfterFunc(l.engine.cfg.DrainTimeout, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.conns {
			c.cut()
		}
	})
}

// A front is a compiled listener configuration: who serves a connection.
type front struct {
	config *l7.Listener
	chains []*chain
	def    *chain
	// peek says that the first bytes decide.
	peek bool
	// destination says that the original destination decides.
	destination bool
}

func (e *Engine) newFront(l *l7.Listener) *front {
	f := &front{config: l}
	for _, c := range l.Chains {
		f.chains = append(f.chains, e.newChain(l, c))
	}
	if l.Default != nil {
		f.def = e.newChain(l, l.Default)
	}
	for _, c := range f.all() {
		m := &c.config.Match
		f.peek = f.peek || c.tls != nil || len(m.ServerNames) > 0 || m.Transport != "" || len(m.ApplicationProtocols) > 0
		f.destination = f.destination || m.DestinationPort != 0 || len(m.Destinations) > 0
	}
	return f
}

func (f *front) all() []*chain {
	if f.def == nil {
		return f.chains
	}
	return append(slices.Clip(f.chains), f.def)
}

// handOff finds the virtual listener of a destination.
func (c *compiled) handOff(to netip.AddrPort) *front {
	if f := c.virtual[to.String()]; f != nil {
		return f
	}
	any4, any6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	if f := c.virtual[netip.AddrPortFrom(any4, to.Port()).String()]; f != nil {
		return f
	}
	return c.virtual[netip.AddrPortFrom(any6, to.Port()).String()]
}
