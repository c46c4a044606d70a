package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddAddress gives an interface an address with the length of its network;
// one that it has is no error.
func (c *Conn) AddAddress(index int, p netip.Prefix) error {
	err := c.h.AddrReplace(byIndex(index), &netlink.Addr{IPNet: ipNet(p), Flags: addrFlags(p)})
	if err != nil {
		return fmt.Errorf("add address %s: %w", p, err)
	}
	return nil
}

// addrFlags spares IPv6 duplicate address detection: the addresses are ours to give.
func addrFlags(p netip.Prefix) int {
	if p.Addr().Is6() {
		return unix.IFA_F_NODAD
	}
	return 0
}

// RemoveAddress takes an address away; one that is not there is no error.
func (c *Conn) RemoveAddress(index int, p netip.Prefix) error {
	err := c.h.AddrDel(byIndex(index), &netlink.Addr{IPNet: ipNet(p)})
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove address %s: %w", p, err)
	}
	return nil
}

// Addresses returns the global addresses of an interface.
func (c *Conn) Addresses(index int) ([]netip.Prefix, error) {
	list, err := c.h.AddrList(byIndex(index), netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("addresses of interface %d: %w", index, err)
	}
	var out []netip.Prefix
	for _, a := range list {
		ip, ok := netip.AddrFromSlice(a.IP)
		if !ok || ip.Unmap().IsLinkLocalUnicast() {
			continue
		}
		bits, _ := a.Mask.Size()
		out = append(out, netip.PrefixFrom(ip.Unmap(), bits))
	}
	return out, nil
}

// AddLoopback puts an address on the loopback interface of the calling thread's
// network namespace, alone in its network, so that a process can listen on it.
func AddLoopback(a netip.Addr) error {
	return onLoopback(func(c *Conn) error { return c.AddAddress(1, netip.PrefixFrom(a, a.BitLen())) })
}

// RemoveLoopback takes it away again.
func RemoveLoopback(a netip.Addr) error {
	return onLoopback(func(c *Conn) error { return c.RemoveAddress(1, netip.PrefixFrom(a, a.BitLen())) })
}

func onLoopback(f func(*Conn) error) error {
	c, err := Open()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}
