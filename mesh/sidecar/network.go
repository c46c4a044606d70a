package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/linux/redirect"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/sidecar/translate"
)

// A Network is how connections come and go.
type Network interface {
	OriginalDestination(c net.Conn) (netip.AddrPort, error)
	Dial(ctx context.Context, c *l7.Cluster, address string) (net.Conn, error)
}

// kernel is the network of a pod with redirect rules.
type kernel struct{}

// ErrLoop is returned for connections that were made to the proxy itself.
var ErrLoop = errors.New("the connection was made to the proxy's own port")

// OriginalDestination implements Network.
func (kernel) OriginalDestination(c net.Conn) (netip.AddrPort, error) {
	to, err := redirect.OriginalDestination(c)
	if err != nil {
		return to, err
	}
	// What was not redirected would be sent to ourselves again, and again.
	if to.Port() == mesh.OutboundPort || to.Port() == mesh.InboundPort {
		return to, fmt.Errorf("%w: %s", ErrLoop, to)
	}
	return to, nil
}

// Dial implements Network.
func (kernel) Dial(ctx context.Context, c *l7.Cluster, address string) (net.Conn, error) {
	var d net.Dialer
	if source := c.Metadata[translate.Bind]; source != "" {
		if a, err := netip.ParseAddr(source); err == nil && isIPv4(address) {
			d.LocalAddr = &net.TCPAddr{IP: a.AsSlice()}
		}
	}
	return d.DialContext(ctx, "tcp", address)
}

func isIPv4(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Is4()
}
