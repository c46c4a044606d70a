package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A VXLAN is a tunnel device without learning (RFC 7348): who is where, it is told.
type VXLAN struct {
	Name  string
	ID    int // network identifier
	Port  int // UDP
	Local netip.Addr
	MAC   net.HardwareAddr
	MTU   int
}

// EnsureVXLAN makes the device, if it is not there as wanted, and brings it up.
func (c *Conn) EnsureVXLAN(v VXLAN) (Info, error) {
	l, err := c.get(v.Name)
	if err == nil && !sameVXLAN(l, v) {
		if err := c.Remove(v.Name); err != nil {
			return Info{}, err
		}
		err = ErrNotFound
	}
	if errors.Is(err, ErrNotFound) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr, attrs.MTU = v.Name, v.MAC, v.MTU
		device := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: v.ID, Port: v.Port, SrcAddr: v.Local.AsSlice(), UDPCSum: true}
		if v.Local.Is6() {
			device.UDP6ZeroCSumRx = true
		}
		if err := c.h.LinkAdd(device); err != nil {
			return Info{}, fmt.Errorf("make VXLAN device %s: %w", v.Name, err)
		}
		l, err = c.get(v.Name)
	}
	if err != nil {
		return Info{}, err
	}
	if l.Attrs().MTU != v.MTU {
		if err := c.h.LinkSetMTU(l, v.MTU); err != nil {
			return Info{}, fmt.Errorf("MTU of %s: %w", v.Name, err)
		}
	}
	if l.Attrs().Flags&net.FlagUp == 0 {
		if err := c.h.LinkSetUp(l); err != nil {
			return Info{}, fmt.Errorf("bring up %s: %w", v.Name, err)
		}
	}
	return info(l), nil
}

func sameVXLAN(l netlink.Link, v VXLAN) bool {
	x, ok := l.(*netlink.Vxlan)
	return ok && x.VxlanId == v.ID && x.Port == v.Port && !x.Learning && x.SrcAddr.Equal(v.Local.AsSlice()) &&
		x.Attrs().HardwareAddr.String() == v.MAC.String()
}

// A Neighbor is a permanent entry: an address's hardware address, or, in the
// forwarding table of a tunnel, a hardware address's tunnel end.
type Neighbor struct {
	IP  netip.Addr
	MAC net.HardwareAddr
}

// Neighbors returns the permanent entries of a device; forwarding chooses the
// forwarding table of a tunnel.
func (c *Conn) Neighbors(index int, forwarding bool) ([]Neighbor, error) {
	family := unix.AF_UNSPEC
	if forwarding {
		family = unix.AF_BRIDGE
	}
	list, err := c.h.NeighList(index, family)
	if err != nil {
		return nil, fmt.Errorf("neighbours of interface %d: %w", index, err)
	}
	var out []Neighbor
	for _, n := range list {
		ip, ok := netip.AddrFromSlice(n.IP)
		if n.State&netlink.NUD_PERMANENT != 0 && ok && len(n.HardwareAddr) > 0 {
			out = append(out, Neighbor{ip.Unmap(), n.HardwareAddr})
		}
	}
	return out, nil
}

// SetNeighbor makes or replaces an entry.
func (c *Conn) SetNeighbor(index int, n Neighbor, forwarding bool) error {
	if err := c.h.NeighSet(n.netlink(index, forwarding)); err != nil {
		return fmt.Errorf("neighbour %s at %s: %w", n.IP, n.MAC, err)
	}
	return nil
}

// RemoveNeighbor removes an entry; one that is not there is no error.
func (c *Conn) RemoveNeighbor(index int, n Neighbor, forwarding bool) error {
	err := c.h.NeighDel(n.netlink(index, forwarding))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove neighbour %s at %s: %w", n.IP, n.MAC, err)
	}
	return nil
}

func (n Neighbor) netlink(index int, forwarding bool) *netlink.Neigh {
	out := &netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, IP: n.IP.AsSlice(), HardwareAddr: n.MAC}
	switch {
	case forwarding:
		out.Family, out.Flags = unix.AF_BRIDGE, netlink.NTF_SELF
	case n.IP.Is6():
		out.Family = netlink.FAMILY_V6
	default:
		out.Family = netlink.FAMILY_V4
	}
	return out
}
