package porttest

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// Closed returns an address that refuses connections.
func Closed(t testing.TB) string {
	t.Helper()
	return reserve(t, 0).String()
}

// Free returns a TCP port for one listener, which must set SO_REUSEADDR, as those of
// package net do. The kernel gives it to nobody who does not ask for its number.
func Free(t testing.TB) int {
	t.Helper()
	return int(reserve(t, 1).Port())
}

// reserve binds a socket that never listens.
func reserve(t testing.TB, reuse int) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, reuse); err != nil {
		t.Fatal(err)
	}
	loopback := [4]byte{127, 0, 0, 1}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback}); err != nil {
		t.Fatal(err)
	}
	a, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(loopback), uint16(a.(*unix.SockaddrInet4).Port))
}
