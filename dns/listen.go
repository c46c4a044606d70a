package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	miekg "github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/periplus/periplus/base"
)

// Bounds of what clients can occupy.
const (
	maxWaiting     = 1024 // questions over UDP that wait for upstream resolvers
	maxConnections = 512
	tcpIdle        = 10 * time.Second
	tcpWrite       = 5 * time.Second
	maxErrors      = 100 // of a listener in a row
)

// udpReaders is how many goroutines read the one UDP socket.
func udpReaders() int { return min(4, runtime.GOMAXPROCS(0)) }

// serveUDP answers what needs no other server right here, without another
// goroutine; questions for upstream resolvers go on in the group.
func (s *Server) serveUDP(ctx context.Context, conn *net.UDPConn, group *errgroup.Group) error {
	x := exchanges.Get().(*exchange)
	defer func() { x.release() }()
	for bad := 0; ; {
		n, from, err := conn.ReadFromUDPAddrPort(x.in)
		if err != nil {
			if bad++; s.over(ctx, bad, err) {
				return ended(err)
			}
			continue
		}
		bad = 0
		if x.accept(x.in[:n], true) == asked && !s.resolve(x, nil) {
			waiting := x
			select {
			case s.slots <- struct{}{}:
				group.Go(func() error {
					defer func() { <-s.slots }()
					s.resolveUpstream(ctx, waiting)
					s.replyUDP(conn, from, waiting)
					return nil
				})
				x = exchanges.Get().(*exchange)
				continue
			default:
				x.fail(miekg.ExtendedErrorCodeNotReady, "too many questions wait for upstream resolvers")
			}
		}
		s.replyUDP(conn, from, x)
		x = exchanges.Get().(*exchange)
	}
}

// replyUDP sends the answer, if there is one, and ends the exchange.
func (s *Server) replyUDP(conn *net.UDPConn, to netip.AddrPort, x *exchange) {
	defer x.release()
	if !x.reply.Response {
		return
	}
	out, err := x.pack()
	if err == nil {
		_, err = conn.WriteToUDPAddrPort(out, to)
	}
	if err != nil {
		s.cfg.Log.Debug("Cannot send a DNS answer", base.KeyAddress, to.String(), base.KeyError, err)
	}
}

// serveTCP accepts connections; each is served in the group until it is idle.
func (s *Server) serveTCP(ctx context.Context, l net.Listener, group *errgroup.Group) error {
	var open atomic.Int32
	for bad := 0; ; {
		conn, err := l.Accept()
		if err != nil {
			if bad++; s.over(ctx, bad, err) {
				return ended(err)
			}
			continue
		}
		bad = 0
		if open.Add(1) > maxConnections {
			open.Add(-1)
			_ = conn.Close()
			continue
		}
		group.Go(func() error {
			defer open.Add(-1)
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer conn.Close()
			err := s.serveConn(ctx, conn)
			if err != nil && ctx.Err() == nil {
				s.cfg.Log.Debug("DNS connection ended", base.KeyAddress, conn.RemoteAddr().String(), base.KeyError, err)
			}
			return nil
		})
	}
}

// serveConn answers the questions of one connection, one after the other; each
// message has its length in front (RFC 7766).
func (s *Server) serveConn(ctx context.Context, conn net.Conn) error {
	var head [2]byte
	for {
		if err := conn.SetReadDeadline(time.Now().Add(tcpIdle)); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if n > maxRequest {
			return errors.New("the question is too long")
		}
		if err := s.answerTCP(ctx, conn, n); err != nil {
			return err
		}
	}
}

func (s *Server) answerTCP(ctx context.Context, conn net.Conn, n int) error {
	x := exchanges.Get().(*exchange)
	defer x.release()
	if _, err := io.ReadFull(conn, x.in[:n]); err != nil {
		return err
	}
	out, err := s.handle(ctx, x, x.in[:n], false)
	if err != nil || out == nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(tcpWrite)); err != nil {
		return err
	}
	var head [2]byte
	binary.BigEndian.PutUint16(head[:], uint16(len(out)))
	_, err = (&net.Buffers{head[:], out}).WriteTo(conn)
	return err
}

// over says whether a listener that failed several times in a row is to be given
// up. Until then it waits a moment: what is missing (memory, descriptors) may
// come back.
func (s *Server) over(ctx context.Context, bad int, err error) bool {
	if errors.Is(err, net.ErrClosed) || bad > maxErrors {
		return true
	}
	if bad == 1 {
		s.cfg.Log.Warn("DNS listener failed", base.KeyError, err)
	}
	t := time.NewTimer(min(time.Second, time.Duration(bad)*10*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return false
	case <-ctx.Done():
		return true
	}
}

// ended turns the end of a listener into that of Run.
func ended(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
