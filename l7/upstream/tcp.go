package upstream

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
)

// A Stream is a connection of a TCP proxy to an endpoint.
type Stream struct {
	net.Conn
	Endpoint *l7.Endpoint
	Peer     *l7.Peer
	host     *host
}

// Dial connects to an endpoint, trying up to attempts of them. The error is a *Failure.
func (cl *Cluster) Dial(ctx context.Context, choice balance.Choice, to netip.AddrPort, attempts int) (*Stream, error) {
	var tried []*host
	var last error
	for range max(attempts, 1) {
		s := cl.state.Load()
		h := cl.pick(s, time.Now(), &choice, tried, to)
		if h == nil {
			return nil, &Failure{NoEndpoint, errNoEndpoint}
		}
		tried = append(tried, h)
		h.Active.Add(1)
		c, err := h.connect(ctx, s)
		if err == nil {
			cl.result(h, 200)
			return &Stream{Conn: c.Conn, Endpoint: h.Endpoint(), Peer: c.peer, host: h}, nil
		}
		h.Active.Add(-1)
		cl.result(h, 0)
		last = err
	}
	return nil, last
}

// Close closes the connection; once.
func (s *Stream) Close() error {
	err := s.Conn.Close()
	s.host.Active.Add(-1)
	s.host.cluster.closedConnection()
	return err
}
