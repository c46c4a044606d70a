package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Route is one of those that Periplus makes.
type Route struct {
	Dst         netip.Prefix // the zero prefix is the default route of Via's family
	Via         netip.Addr   // gateway; none when zero
	Index       int          // interface; 0 for an unreachable route
	Src         netip.Addr   // preferred source; none when zero
	Metric      int
	Unreachable bool // packets die here, with an error to who sent them
	OnLink      bool // Via is taken to be reachable at the interface
	Protocol    int  // who made it, see MarkedRoutes; 0: not said
}

// SetRoute makes or replaces a route.
func (c *Conn) SetRoute(r Route) error {
	if err := c.h.RouteReplace(r.netlink()); err != nil {
		return fmt.Errorf("route to %s: %w", r.Dst, err)
	}
	return nil
}

// RemoveRoute removes a route; one that is not there is no error.
func (c *Conn) RemoveRoute(r Route) error {
	err := c.h.RouteDel(r.netlink())
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove route to %s: %w", r.Dst, err)
	}
	return nil
}

func (r Route) netlink() *netlink.Route {
	out := &netlink.Route{LinkIndex: r.Index, Priority: r.Metric}
	if r.Dst.IsValid() {
		out.Dst = ipNet(r.Dst.Masked())
	} else {
		zero := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if r.Via.Is6() {
			zero = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		out.Dst = ipNet(zero)
	}
	if r.Via.IsValid() {
		out.Gw = r.Via.AsSlice()
	} else if !r.Unreachable {
		out.Scope = netlink.SCOPE_LINK
	}
	if r.OnLink {
		out.Flags |= int(netlink.FLAG_ONLINK)
	}
	if r.Protocol != 0 {
		out.Protocol = netlink.RouteProtocol(r.Protocol)
	}
	if r.Src.IsValid() {
		out.Src = r.Src.AsSlice()
	}
	if r.Unreachable {
		out.Type = unix.RTN_UNREACHABLE
	}
	return out
}
