package redirect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// OriginalDestination tells where a redirected connection was going
// (SO_ORIGINAL_DST); ErrNotRedirected for others.
func OriginalDestination(c net.Conn) (netip.AddrPort, error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("original destination of %T: %w", c, ErrNotRedirected)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	local, _ := c.LocalAddr().(*net.TCPAddr)
	v4 := local == nil || local.IP.To4() != nil
	var dst netip.AddrPort
	var failed error
	if err := raw.Control(func(fd uintptr) { dst, failed = original(int(fd), v4) }); err != nil {
		return netip.AddrPort{}, err
	}
	if errors.Is(failed, unix.ENOENT) || errors.Is(failed, unix.ENOPROTOOPT) {
		return netip.AddrPort{}, ErrNotRedirected
	}
	if failed != nil {
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", failed)
	}
	return dst, nil
}

func original(fd int, v4 bool) (netip.AddrPort, error) {
	if v4 {
		// The kernel fills a sockaddr_in; this option's type has room for it.
		m, err := unix.GetsockoptIPv6Mreq(fd, unix.IPPROTO_IP, unix.SO_ORIGINAL_DST)
		if err != nil {
			return netip.AddrPort{}, err
		}
		port := binary.BigEndian.Uint16(m.Multiaddr[2:4])
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Multiaddr[4:8])), port), nil
	}
	m, err := unix.GetsockoptIPv6MTUInfo(fd, unix.IPPROTO_IPV6, unix.SO_ORIGINAL_DST)
	if err != nil {
		return netip.AddrPort{}, err
	}
	// The port is in network order in memory.
	port := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, m.Addr.Port))
	return netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), port), nil
}
