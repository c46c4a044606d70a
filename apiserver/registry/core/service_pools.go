package core

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
)

// The first addresses and ports of a range are left to those who choose them
// themselves: dynamic allocation comes there last (KEP-3070, KEP-3668).
//
//	addresses  size/16, at least 16 and at most 256
//	ports      size/32, at least 16 and at most 128
func staticBand(size, step, most uint64) uint64 {
	const least = 16
	if size <= least {
		return 0
	}
	return min(max(size/step, least), most)
}

// An addressPool hands out the addresses of a range, all but the network's own
// and an IPv4 network's broadcast address.
type addressPool struct {
	prefix netip.Prefix
	first  netip.Addr
	size   uint64 // number of addresses, at most 2^62
	static uint64 // length of the static band
	used   map[netip.Addr]struct{}
}

func newAddressPool(prefix netip.Prefix) *addressPool {
	prefix = prefix.Masked()
	hostBits := prefix.Addr().BitLen() - prefix.Bits()
	p := &addressPool{prefix: prefix, first: prefix.Addr().Next(), used: map[netip.Addr]struct{}{}}
	total := uint64(1) << min(hostBits, 62)
	switch {
	case prefix.Addr().Is4() && total > 2:
		p.size = total - 2
	case prefix.Addr().Is4():
		p.size = 0
	default:
		p.size = total - 1
	}
	p.static = min(staticBand(total, 16, 256), p.size)
	return p
}

// at returns the i-th address of the pool.
func (p *addressPool) at(i uint64) netip.Addr {
	if p.first.Is4() {
		b := p.first.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(i))
		return netip.AddrFrom4(b)
	}
	b := p.first.As16()
	low, carry := bits.Add64(binary.BigEndian.Uint64(b[8:]), i, 0)
	binary.BigEndian.PutUint64(b[8:], low)
	binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])+carry)
	return netip.AddrFrom16(b)
}

func (p *addressPool) take(ip netip.Addr) error {
	last := p.at(max(p.size, 1) - 1)
	if !p.prefix.Contains(ip) {
		return errOtherNetwork
	}
	if p.size == 0 || ip.Less(p.first) || last.Less(ip) {
		return fmt.Errorf("the provided IP (%v) is not in the valid range. The range of valid IPs is %s", ip, p.prefix)
	}
	if _, taken := p.used[ip]; taken {
		return errIPTaken
	}
	p.used[ip] = struct{}{}
	return nil
}

// next takes a free address: a random one behind the static band, else one of it.
func (p *addressPool) next() (netip.Addr, error) {
	for _, band := range [][2]uint64{{p.static, p.size}, {0, p.static}} {
		i, ok := pick(band[0], band[1], func(i uint64) bool { _, taken := p.used[p.at(i)]; return taken })
		if ok {
			ip := p.at(i)
			p.used[ip] = struct{}{}
			return ip, nil
		}
	}
	return netip.Addr{}, errFull
}

func (p *addressPool) free(ip netip.Addr) { delete(p.used, ip) }

// A portPool hands out node ports.
type portPool struct {
	low, high int32
	static    int32
	used      map[int32]struct{}
}

func newPortPool(low, high int32) *portPool {
	return &portPool{low: low, high: high, static: int32(staticBand(uint64(high-low+1), 32, 128)), used: map[int32]struct{}{}}
}

func (p *portPool) take(port int32) error {
	if port < p.low || port > p.high {
		return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %d-%d", p.low, p.high)
	}
	if _, taken := p.used[port]; taken {
		return errPortTaken
	}
	p.used[port] = struct{}{}
	return nil
}

func (p *portPool) next() (int32, error) {
	size := uint64(p.high - p.low + 1)
	for _, band := range [][2]uint64{{uint64(p.static), size}, {0, uint64(p.static)}} {
		i, ok := pick(band[0], band[1], func(i uint64) bool { _, taken := p.used[p.low+int32(i)]; return taken })
		if ok {
			port := p.low + int32(i)
			p.used[port] = struct{}{}
			return port, nil
		}
	}
	return 0, errFull
}

func (p *portPool) free(port int32) { delete(p.used, port) }

// pick returns a random index of [from, to) that is not taken.
func pick(from, to uint64, taken func(uint64) bool) (uint64, bool) {
	if from >= to {
		return 0, false
	}
	n := to - from
	start := rand.Uint64N(n)
	for i := range n {
		if index := from + (start+i)%n; !taken(index) {
			return index, true
		}
	}
	return 0, false
}
