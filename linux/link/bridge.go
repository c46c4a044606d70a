package link

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// EnsureBridge makes a bridge, if it is not there, and brings it up. A fixed
// hardware address keeps it from changing with every port that comes and goes.
func (c *Conn) EnsureBridge(name string, mac net.HardwareAddr, mtu int) (Info, error) {
	l, err := c.get(name)
	if errors.Is(err, ErrNotFound) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr, attrs.MTU = name, mac, mtu
		attrs.Flags = net.FlagUp
		err = c.h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs})
		if err != nil && !errors.Is(err, os.ErrExist) {
			return Info{}, fmt.Errorf("make bridge %s: %w", name, err)
		}
		l, err = c.get(name)
	}
	if err != nil {
		return Info{}, err
	}
	if l.Type() != "bridge" {
		return Info{}, fmt.Errorf("interface %s is a %s, not a bridge: remove it or choose another name", name, l.Type())
	}
	if l.Attrs().MTU != mtu {
		if err := c.h.LinkSetMTU(l, mtu); err != nil {
			return Info{}, fmt.Errorf("MTU of bridge %s: %w", name, err)
		}
	}
	if l.Attrs().Flags&net.FlagUp == 0 {
		if err := c.h.LinkSetUp(l); err != nil {
			return Info{}, fmt.Errorf("bring up bridge %s: %w", name, err)
		}
	}
	return info(l), nil
}

// A Pair is a veth pair between this namespace and another.
type Pair struct {
	Name   string // this end
	Peer   string // the other end
	MTU    int
	Bridge int // index of the bridge that this end becomes a port of; 0: none
	Other  *Conn
	MAC    net.HardwareAddr // of the other end
}

// AddPair makes a veth pair: this end a port of the bridge and up, with
// hairpin mode (a pod may reach itself through a Service), the other in the
// other namespace and down.
func (c *Conn) AddPair(p Pair) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.MasterIndex, attrs.Flags = p.Name, p.MTU, p.Bridge, net.FlagUp
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerMTU, veth.PeerHardwareAddr = p.Peer, uint32(p.MTU), p.MAC
	veth.PeerNamespace = netlink.NsFd(p.Other.ns.Fd())
	if err := c.h.LinkAdd(veth); err != nil {
		return fmt.Errorf("make veth pair %s: %w", p.Name, err)
	}
	l, err := c.get(p.Name)
	if err == nil && p.Bridge != 0 {
		err = c.h.LinkSetHairpin(l, true)
	}
	if err == nil && l.Attrs().Flags&net.FlagUp == 0 {
		err = c.h.LinkSetUp(l)
	}
	if err != nil {
		_ = c.Remove(p.Name)
		return fmt.Errorf("veth %s: %w", p.Name, err)
	}
	return nil
}

// Ports returns the names of a bridge's ports.
func (c *Conn) Ports(bridge int) ([]string, error) {
	links, err := c.h.LinkList()
	if err != nil && !errors.Is(err, unix.EINTR) {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var out []string
	for _, l := range links {
		if l.Attrs().MasterIndex == bridge {
			out = append(out, l.Attrs().Name)
		}
	}
	return out, nil
}
