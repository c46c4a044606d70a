package conntrack

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Conn is a connection to the connection tracker of one network namespace.
type Conn struct{ h *netlink.Handle }

// Open connects to the network namespace of the calling thread.
func Open() (*Conn, error) {
	h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("netlink socket for conntrack: %w", err)
	}
	return &Conn{h: h}, nil
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.h.Close()
	return nil
}

// A Flow is what a tracked connection looks like from both ends: where its
// client sent to, and who answers.
type Flow struct {
	Proto    uint8
	Original netip.AddrPort // destination in the original direction
	Reply    netip.AddrPort // source in the reply direction
}

// Remove removes the connections that match says so of, and returns their number.
func (c *Conn) Remove(ipv6 bool, match func(Flow) bool) (int, error) {
	family := netlink.InetFamily(unix.AF_INET)
	if ipv6 {
		family = unix.AF_INET6
	}
	n, err := c.h.ConntrackDeleteFilters(netlink.ConntrackTable, family, filter(match))
	if err != nil {
		return int(n), fmt.Errorf("remove tracked connections: %w", err)
	}
	return int(n), nil
}

type filter func(Flow) bool

var _ netlink.CustomConntrackFilter = filter(nil)

// MatchConntrackFlow is how the netlink library asks.
func (f filter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	dst, ok1 := netip.AddrFromSlice(flow.Forward.DstIP)
	src, ok2 := netip.AddrFromSlice(flow.Reverse.SrcIP)
	if !ok1 || !ok2 {
		return false
	}
	return f(Flow{
		Proto:    flow.Forward.Protocol,
		Original: netip.AddrPortFrom(dst.Unmap(), flow.Forward.DstPort),
		Reply:    netip.AddrPortFrom(src.Unmap(), flow.Reverse.SrcPort),
	})
}
