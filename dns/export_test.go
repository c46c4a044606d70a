package dns

import (
	"context"
	"net/netip"
	"time"
)

// Message answers one message as if it had come over a socket; nil: no answer.
func (s *Server) Message(ctx context.Context, in []byte, udp bool) ([]byte, error) {
	x := exchanges.Get().(*exchange)
	defer x.release()
	out, err := s.handle(ctx, x, in, udp)
	return append([]byte(nil), out...), err
}

// Bench is Message without the copy.
func (s *Server) Bench(ctx context.Context, in []byte) int {
	x := exchanges.Get().(*exchange)
	defer x.release()
	out, _ := s.handle(ctx, x, in, true)
	return len(out)
}

// Follow fills the index until undo is called.
func (s *Server) Follow(ctx context.Context) (undo func(), err error) { return s.follow(ctx) }

// SetClock gives the cache another clock.
func (s *Server) SetClock(now func() time.Time) { s.forwarder.now = now }

// Resolvers reads resolv.conf files.
func Resolvers(path, stub string, self netip.Addr) ([]netip.AddrPort, error) {
	return resolvers(path, stub, self)
}

// SetUpstreams makes these the resolvers.
func (s *Server) SetUpstreams(addrs ...netip.AddrPort) {
	u := s.forwarder.upstreams
	u.mu.Lock()
	defer u.mu.Unlock()
	u.servers = sameServers(nil, addrs)
	u.checked = time.Now().Add(24 * time.Hour) // the file is not looked at
}
