package upstream

import (
	"crypto/tls"
	"net"
	"syscall"
)

// alive reports whether an idle connection has neither been closed by the other side
// nor got bytes that nobody asked for. It peeks without waiting: an expired deadline
// would not do, since Go then does not look at the socket at all.
func alive(c net.Conn) bool {
	secure := false
	if t, ok := c.(*tls.Conn); ok {
		c, secure = t.NetConn(), true
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	good := false
	var b [1]byte
	err = raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		// TLS may have sent a session ticket, which is no answer.
		good = err == syscall.EAGAIN || n > 0 && secure //nolint:errorlint // an errno as it is
		return true
	})
	return err == nil && good
}
