package engine

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/periplus/periplus/l7"
)

// Config is what an engine takes from its surroundings. All fields are optional.
type Config struct {
	// Listen opens the socket of a listener; default: TCP at its address. Give another
	// one to listen in another network namespace or transparently.
	Listen func(ctx context.Context, l *l7.Listener) (net.Listener, error)
	// Dial connects to an endpoint of a cluster; default: TCP. Give another one to bind
	// a source address, mark packets, or go through a tunnel.
	Dial func(ctx context.Context, c *l7.Cluster, address string) (net.Conn, error)
	// OriginalDestination tells where a redirected connection was going; default: its
	// local address. It is asked once for each connection of a listener with HandOff or
	// with chains that match a destination.
	OriginalDestination func(c net.Conn) (netip.AddrPort, error)
	// DrainTimeout is how long requests may go on after their listener was removed or
	// Run was told to end. Default: 30 s.
	DrainTimeout time.Duration
	// Log gets what operators must know; default: nothing.
	Log *slog.Logger
}

func (c *Config) defaults() {
	if c.Listen == nil {
		c.Listen = func(ctx context.Context, l *l7.Listener) (net.Listener, error) {
			var lc net.ListenConfig
			return lc.Listen(ctx, "tcp", l.Address)
		}
	}
	if c.Dial == nil {
		c.Dial = func(ctx context.Context, _ *l7.Cluster, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	if c.OriginalDestination == nil {
		c.OriginalDestination = func(c net.Conn) (netip.AddrPort, error) {
			a, err := netip.ParseAddrPort(c.LocalAddr().String())
			return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), err
		}
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
}
