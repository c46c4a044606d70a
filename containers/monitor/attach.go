package monitor

import (
	"net"
	"time"
)

// attachTimeout is how long a client may let a container wait for reading what
// it writes; then it is cut off.
const attachTimeout = 10 * time.Second

// An attachment is one client of one container's streams.
type attachment struct {
	conn *net.UnixConn
	want [3]bool // by frame kind
}

// broadcast sends output to the attached clients. A slow one slows the
// container down, as a slow terminal would, but only so long.
func (c *container) broadcast(kind byte, p []byte) {
	c.mu.Lock()
	var to []*attachment
	for a := range c.clients {
		if a.want[kind] {
			to = append(to, a)
		}
	}
	c.mu.Unlock()
	for _, a := range to {
		_ = a.conn.SetWriteDeadline(time.Now().Add(attachTimeout))
		if writeFrame(a.conn, kind, p) != nil {
			c.detach(a)
			a.conn.Close()
		}
	}
}

// attach adds a client; false means that the container has ended.
func (c *container) attach(a *attachment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		return false
	}
	c.clients[a] = true
	return true
}

func (c *container) detach(a *attachment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, a)
}

// serveAttach carries one client's input until it leaves or the container ends.
func (s *Server) serveAttach(conn *net.UnixConn, req AttachRequest) {
	c := s.find(req.ID)
	if c == nil {
		_ = reply(conn, missing(req.ID))
		return
	}
	a := &attachment{conn: conn, want: [3]bool{frameStdout: req.Stdout, frameStderr: req.Stderr}}
	// Answered before it is added, so that no output overtakes the answer.
	if reply(conn, Reply{}) != nil || !c.attach(a) {
		return
	}
	defer c.detach(a)
	buf := make([]byte, maxFrame)
	for {
		kind, p, err := readFrame(conn, buf)
		if err != nil {
			// A client that vanishes has no more input either.
			if req.Stdin {
				c.endStdin()
			}
			return
		}
		switch {
		case kind == frameStdin && req.Stdin:
			c.input(p)
		case kind == frameCloseStdin && req.Stdin:
			c.endStdin()
		}
	}
}

func (c *container) input(p []byte) {
	c.mu.Lock()
	stdin := c.stdin
	c.mu.Unlock()
	if stdin != nil {
		_, _ = stdin.Write(p)
	}
}

// endStdin is called when a client's input ends: with StdinOnce the container's
// ends too, otherwise it waits for the next client.
func (c *container) endStdin() {
	if !c.Start.StdinOnce {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stdin == nil:
		return
	case c.stdin == c.console:
		_, _ = c.console.Write([]byte{4}) // end of transmission: a terminal's end of file
	default:
		c.stdin.Close()
	}
	c.stdin = nil
}
