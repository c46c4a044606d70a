package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
)

// startup is more than it takes from the first object to a process that knows it.
const startup = 10 * time.Second

// takeOver bounds how long a predecessor may take to hand over its sockets.
const takeOver = 5 * time.Second

// A Child is the process's own side: its socket, its listeners, its predecessor.
type Child struct {
	socket      string
	fingerprint string
	log         *slog.Logger
	ready       chan struct{} // closed by the first Applied
	drained     chan struct{} // closed when somebody says "drain"
	drain       func()
	began       time.Time

	mu          sync.Mutex // guards the rest
	predecessor net.Conn   // nil: none
	inherited   map[string]*os.File
	open        map[string]net.Listener
	taken       map[int]string
	told        map[net.Conn]bool // who follows the state
}

// NewChild returns the own side of a process that is known by socket. If another one
// is, its listening sockets are taken over.
func NewChild(socket, fingerprint string, log *slog.Logger) *Child {
	c := &Child{
		socket: socket, fingerprint: fingerprint, log: log, ready: make(chan struct{}), drained: make(chan struct{}),
		began:     time.Now(),
		inherited: map[string]*os.File{}, open: map[string]net.Listener{}, told: map[net.Conn]bool{},
	}
	c.drain = sync.OnceFunc(func() { close(c.drained) })
	conn, err := net.DialTimeout("unix", socket, takeOver) //nolint:noctx // bounded
	if err != nil {
		c.began = c.began.Add(-startup)
		return c // nobody is there
	}
	c.predecessor = conn
	_ = conn.SetDeadline(time.Now().Add(takeOver)) // a Unix socket has deadlines
	err = say(conn, wordSockets)
	if err == nil {
		c.inherited, err = receiveSockets(conn.(*net.UnixConn))
	}
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		c.inherited = map[string]*os.File{}
		log.Warn("The sockets of the gateway before this one could not be taken over: clients may be refused for a moment", base.KeyError, err)
	}
	return c
}

// Began is since when there has been something to serve, about: a process without a
// predecessor was started because of an object that had just been made.
func (c *Child) Began() time.Time { return c.began }

// Listen opens the socket of a listener, or takes the one of the predecessor.
func (c *Child) Listen(ctx context.Context, l *l7.Listener) (net.Listener, error) {
	c.mu.Lock()
	f := c.inherited[l.Address]
	delete(c.inherited, l.Address)
	c.mu.Unlock()
	var out net.Listener
	var err error
	if f != nil {
		out, err = net.FileListener(f)
		_ = f.Close() // FileListener has made a copy
	} else {
		out, err = (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[l.Address] = out
	return out, nil
}

// Applied is called whenever a configuration is in force, with the ports that could not
// be opened. The first time the predecessor is told to go.
func (c *Child) Applied(taken map[int]error) {
	now := map[int]string{}
	for port, err := range taken {
		now[port] = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ready:
		if maps.Equal(now, c.taken) {
			return
		}
	default:
		close(c.ready)
	}
	c.taken = now
	for conn := range c.told {
		c.tellLocked(conn)
	}
}

func (c *Child) tellLocked(conn net.Conn) {
	line, err := json.Marshal(state{Fingerprint: c.fingerprint, PID: os.Getpid(), Taken: c.taken})
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // who does not read is told no more
		_, err = conn.Write(append(line, '\n'))
	}
	if err != nil {
		delete(c.told, conn)
		_ = conn.Close()
	}
}

// Drained is closed when the process is to end.
func (c *Child) Drained() <-chan struct{} { return c.drained }

// Run answers at the socket until ctx ends. announce is called when it can be reached.
// Connections stay open until the process ends, so that their end tells of it.
func (c *Child) Run(ctx context.Context, announce func()) error {
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil
	}
	// The name changes hands in one step.
	temporary := c.socket + "." + strconv.Itoa(os.Getpid())
	_ = os.Remove(temporary) // of a process with the same number, long ago
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return fmt.Errorf("gateway's socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temporary, 0o600), os.Rename(temporary, c.socket)); err != nil {
		_ = l.Close()
		return fmt.Errorf("gateway's socket: %w", err)
	}
	c.mu.Lock()
	if c.predecessor != nil {
		if err := say(c.predecessor, wordDrain); err != nil {
			c.log.Debug("the gateway before this one has ended by itself", base.KeyError, err)
		}
		_ = c.predecessor.Close()
		c.predecessor = nil
	}
	for a, f := range c.inherited { // what is not listened at any more
		_ = f.Close()
		delete(c.inherited, a)
	}
	c.mu.Unlock()
	announce()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("gateway's socket: %w", err)
		}
		go c.serve(conn) // ends with its connection, at the latest with the process
	}
}

func (c *Child) serve(conn *net.UnixConn) {
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch strings.TrimSpace(lines.Text()) {
		case wordState:
			c.mu.Lock()
			c.told[conn] = true
			c.tellLocked(conn)
			c.mu.Unlock()
		case wordSockets:
			if err := c.hand(conn); err != nil {
				c.log.Warn("The listening sockets could not be handed over", base.KeyError, err)
			}
		case wordDrain:
			c.drain()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.told, conn)
	_ = conn.Close()
}

// hand sends copies of all listening sockets.
func (c *Child) hand(conn *net.UnixConn) error {
	files := map[string]*os.File{}
	c.mu.Lock()
	for address, l := range c.open {
		f, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			delete(c.open, address) // closed
			continue
		}
		files[address] = f
	}
	c.mu.Unlock()
	err := sendSockets(conn, files)
	for _, f := range files {
		_ = f.Close()
	}
	return err
}
