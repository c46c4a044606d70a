package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A pipe moves bytes both ways until both sides have ended or one has broken.
type pipe struct {
	client, server           net.Conn
	clientFirst, serverFirst []byte // what was read already
	// idle ends a pipe in which nothing moves; zero or less: never.
	idle time.Duration
	last atomic.Int64 // when something moved last; 0: broken

	received, sent int64 // from and to the client
}

// run returns when both directions have ended.
func (p *pipe) run() {
	p.last.Store(time.Now().UnixNano())
	done := make(chan error, 1)
	go func() {
		var err error
		p.received, err = p.direction(p.server, p.client, p.clientFirst)
		done <- p.ended(err)
	}()
	var err error
	p.sent, err = p.direction(p.client, p.server, p.serverFirst)
	_ = p.ended(err)
	<-done //nolint:errcheck // p knows it
	_ = p.client.Close()
	_ = p.server.Close()
}

// ended breaks the other direction too if this one has broken.
func (p *pipe) ended(err error) error {
	if err != nil {
		past := time.Unix(1, 0)
		_ = p.client.SetDeadline(past)
		_ = p.server.SetDeadline(past)
		p.last.Store(0)
	}
	return err
}

// direction copies until the source ends, and then ends the destination's input. A
// few buffers are copied first: short conversations are cheaper that way. Then the
// kernel moves the rest between two TCP sockets.
func (p *pipe) direction(to, from net.Conn, first []byte) (int64, error) {
	var total int64
	if len(first) > 0 {
		n, err := to.Write(first)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	pooled := copyBuffers.Get().(*[]byte)
	buf := *pooled
	for total < spliceAfter || !spliceable(to, from) {
		n, err := p.read(from, buf)
		if n > 0 {
			w, werr := to.Write(buf[:n])
			total += int64(w)
			if werr != nil {
				copyBuffers.Put(pooled)
				return total, werr
			}
		}
		if err != nil {
			copyBuffers.Put(pooled)
			return total, endInput(to, err)
		}
	}
	copyBuffers.Put(pooled)
	for {
		p.arm(from)
		n, err := to.(*net.TCPConn).ReadFrom(from)
		total += n
		if n > 0 {
			p.last.Store(time.Now().UnixNano())
		}
		if err == nil {
			return total, endInput(to, io.EOF)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || p.over() {
			return total, err
		}
	}
}

func spliceable(to, from net.Conn) bool {
	_, a := to.(*net.TCPConn)
	_, b := from.(*net.TCPConn)
	return a && b
}

// read reads once, over deadlines as long as the other direction moves.
func (p *pipe) read(from net.Conn, buf []byte) (int, error) {
	for {
		p.arm(from)
		n, err := from.Read(buf)
		if n > 0 {
			p.last.Store(time.Now().UnixNano())
		}
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && !p.over() {
			continue
		}
		return n, err
	}
}

// arm sets a deadline of half the idle time, so that each direction reports that it
// moves before the other one gives up. With the pipe broken, it is left in the past.
func (p *pipe) arm(c net.Conn) {
	if p.idle > 0 && p.last.Load() != 0 {
		_ = c.SetReadDeadline(time.Now().Add(p.idle / 2))
		if p.last.Load() == 0 {
			_ = c.SetReadDeadline(time.Unix(1, 0))
		}
	}
}

func (p *pipe) over() bool {
	last := p.last.Load()
	return last == 0 || p.idle > 0 && time.Since(time.Unix(0, last)) >= p.idle
}

// endInput tells the other side that no more will come; nil for an orderly end.
func endInput(to net.Conn, err error) error {
	if err != io.EOF { //nolint:errorlint // an io.Reader's EOF is not wrapped
		return err
	}
	if w, ok := to.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return io.EOF
}
