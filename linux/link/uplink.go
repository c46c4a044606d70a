package link

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Holding returns the interface that has an address, and the address with the
// length of its network.
func (c *Conn) Holding(a netip.Addr) (Info, netip.Prefix, error) {
	list, err := c.h.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return Info{}, netip.Prefix{}, fmt.Errorf("addresses: %w", err)
	}
	for _, x := range list {
		if ip, ok := netip.AddrFromSlice(x.IP); ok && ip.Unmap() == a {
			l, err := c.h.LinkByIndex(x.LinkIndex)
			if err != nil {
				return Info{}, netip.Prefix{}, fmt.Errorf("interface of %s: %w", a, err)
			}
			bits, _ := x.Mask.Size()
			return info(l), netip.PrefixFrom(a, bits), nil
		}
	}
	return Info{}, netip.Prefix{}, fmt.Errorf("no interface has the address %s: %w", a, ErrNotFound)
}

// MarkedRoutes returns the routes of the main table that carry a protocol number:
// by it, their maker knows them again.
func (c *Conn) MarkedRoutes(protocol int) ([]Route, error) {
	list, err := c.h.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN, Protocol: netlink.RouteProtocol(protocol)},
		netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	var out []Route
	for _, r := range list {
		if r.Dst == nil {
			continue
		}
		dst, ok := prefixOf(r.Dst)
		if !ok {
			continue
		}
		x := Route{Dst: dst, Index: r.LinkIndex, Metric: r.Priority, Protocol: protocol, OnLink: r.Flags&int(netlink.FLAG_ONLINK) != 0}
		if via, ok := netip.AddrFromSlice(r.Gw); ok {
			x.Via = via.Unmap()
		}
		if src, ok := netip.AddrFromSlice(r.Src); ok {
			x.Src = src.Unmap()
		}
		out = append(out, x)
	}
	return out, nil
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), bits), ok
}
