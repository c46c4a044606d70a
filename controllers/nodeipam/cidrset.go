package nodeipam

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
)

// ErrExhausted is returned when every range of a cluster CIDR is taken.
var ErrExhausted = errors.New("CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range")

// maxRanges bounds the bitmap: 65,536 node ranges (8 KiB).
const maxRanges = 1 << 16

// A cidrSet divides one CIDR into equal ranges and knows which are taken. Free
// ranges are found from where the last was given, so that a range just released
// is not the next one used.
type cidrSet struct {
	cluster netip.Prefix
	mask    int // bits of a range
	count   int
	used    []uint64
	next    int
}

func newCIDRSet(cluster netip.Prefix, mask int) (*cidrSet, error) {
	cluster = cluster.Masked()
	if mask < cluster.Bits() || mask > cluster.Addr().BitLen() {
		return nil, fmt.Errorf("node CIDR mask size %d does not lie between that of the cluster CIDR %s and %d", mask, cluster, cluster.Addr().BitLen())
	}
	extra := mask - cluster.Bits()
	count := maxRanges
	if extra < bits.TrailingZeros(maxRanges) {
		count = 1 << extra
	}
	return &cidrSet{cluster: cluster, mask: mask, count: count, used: make([]uint64, (count+63)/64)}, nil
}

// allocate takes the next free range.
func (s *cidrSet) allocate() (netip.Prefix, error) {
	for i := range s.count {
		n := (s.next + i) % s.count
		if s.used[n/64]&(1<<(n%64)) == 0 {
			s.used[n/64] |= 1 << (n % 64)
			s.next = (n + 1) % s.count
			return s.at(n), nil
		}
	}
	return netip.Prefix{}, ErrExhausted
}

// occupy marks every range that overlaps p as taken; p may be of any size.
func (s *cidrSet) occupy(p netip.Prefix) { s.mark(p, true) }

// release frees the ranges within p.
func (s *cidrSet) release(p netip.Prefix) { s.mark(p, false) }

func (s *cidrSet) mark(p netip.Prefix, taken bool) {
	if p.Addr().Is4() != s.cluster.Addr().Is4() || !p.Overlaps(s.cluster) {
		return
	}
	p = p.Masked()
	first, last := 0, s.count-1
	if p.Bits() > s.cluster.Bits() {
		first = s.index(p.Addr())
		last = first
		if p.Bits() < s.mask {
			last = first + 1<<(s.mask-p.Bits()) - 1
		}
	}
	for n := first; n <= min(last, s.count-1); n++ {
		if taken {
			s.used[n/64] |= 1 << (n % 64)
		} else {
			s.used[n/64] &^= 1 << (n % 64)
		}
	}
}

// index returns the number of the range that holds a.
func (s *cidrSet) index(a netip.Addr) int {
	hi, lo := words(a)
	baseHi, baseLo := words(s.cluster.Addr())
	lo, borrow := bits.Sub64(lo, baseLo, 0)
	hi, _ = bits.Sub64(hi, baseHi, borrow)
	hi, lo = shiftRight(hi, lo, uint(a.BitLen()-s.mask))
	if hi != 0 || lo > maxRanges {
		return maxRanges
	}
	return int(lo)
}

// at returns range number n.
func (s *cidrSet) at(n int) netip.Prefix {
	shift := uint(s.cluster.Addr().BitLen() - s.mask)
	var addHi, addLo uint64
	switch {
	case shift >= 64:
		addHi = uint64(n) << (shift - 64)
	default:
		addLo = uint64(n) << shift
		if shift > 0 {
			addHi = uint64(n) >> (64 - shift)
		}
	}
	hi, lo := words(s.cluster.Addr())
	lo, carry := bits.Add64(lo, addLo, 0)
	hi, _ = bits.Add64(hi, addHi, carry)
	return netip.PrefixFrom(address(s.cluster.Addr().Is4(), hi, lo), s.mask)
}

func words(a netip.Addr) (hi, lo uint64) {
	if a.Is4() {
		b := a.As4()
		return 0, uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

func address(v4 bool, hi, lo uint64) netip.Addr {
	if v4 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(lo))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	return netip.AddrFrom16(b)
}

func shiftRight(hi, lo uint64, n uint) (uint64, uint64) {
	switch {
	case n == 0:
		return hi, lo
	case n >= 64:
		return 0, hi >> (n - 64)
	}
	return hi >> n, lo>>n | hi<<(64-n)
}
