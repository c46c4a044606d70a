package meshtest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh/sidecar/translate"
)

// A fabric carries connections to pod addresses, and remembers where redirected ones
// were going.
type fabric struct {
	mu   sync.Mutex // guards the following
	cond *sync.Cond
	// going is where a connection was going, by its client's address.
	going map[string]netip.AddrPort
	pods  map[netip.Addr]*Pod
}

func newFabric() *fabric {
	f := &fabric{going: map[string]netip.AddrPort{}, pods: map[netip.Addr]*Pod{}}
	f.cond = sync.NewCond(&f.mu)
	return f
}

// redirect connects to a proxy's port and tells it, later, where to.
func (f *fabric) redirect(ctx context.Context, port string, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", port)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.going[c.LocalAddr().String()] = to
	f.mu.Unlock()
	f.cond.Broadcast()
	return c, nil
}

// network is the fabric as one pod sees it.
type network struct {
	fabric *fabric
	pod    *Pod
}

// OriginalDestination implements sidecar.Network.
func (n *network) OriginalDestination(c net.Conn) (netip.AddrPort, error) {
	f := n.fabric
	key := c.RemoteAddr().String()
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if to, ok := f.going[key]; ok {
			delete(f.going, key)
			return to, nil
		}
		f.cond.Wait()
	}
}

// Dial implements sidecar.Network.
func (n *network) Dial(ctx context.Context, c *l7.Cluster, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	if c.Metadata[translate.Bind] != "" {
		return n.pod.dialApp(ctx, to)
	}
	return n.fabric.dial(ctx, to)
}

// dial connects to a pod's address from outside of it.
func (f *fabric) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	f.mu.Lock()
	p := f.pods[to.Addr()]
	f.mu.Unlock()
	switch {
	case p == nil:
		return nil, fmt.Errorf("dial tcp %s: no route to host", to)
	case p.Sidecar == nil:
		return p.dialApp(ctx, to)
	}
	return f.redirect(ctx, p.Sidecar.Engine().Addr("virtualInbound"), to)
}
