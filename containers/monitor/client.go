package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// ErrNoContainer is returned when the monitor does not know the container.
var ErrNoContainer = errors.New("the monitor knows no such container")

// A Client talks to the monitor that listens on a socket. It holds no
// connection, so it survives the monitor's replacement.
type Client struct{ Socket string }

func (c Client) dial(ctx context.Context) (*net.UnixConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the container monitor: %w", err)
	}
	return conn.(*net.UnixConn), nil
}

// open sends a request and returns the connection with the first answer read.
func (c Client) open(ctx context.Context, req Request, files ...*os.File) (*net.UnixConn, Reply, error) {
	var r Reply
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, r, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	if err = sendMessage(conn, req, files...); err == nil {
		r, err = receiveReply(conn)
	}
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, r, err
	}
	return conn, r, nil
}

func receiveReply(conn *net.UnixConn) (Reply, error) {
	var r Reply
	files, err := receiveMessage(conn, &r)
	closeAll(files)
	switch {
	case err != nil:
		return r, fmt.Errorf("the container monitor does not answer: %w", err)
	case r.Missing:
		return r, ErrNoContainer
	case r.Error != "":
		return r, errors.New(r.Error)
	}
	return r, nil
}

func (c Client) call(ctx context.Context, req Request) (Reply, error) {
	conn, r, err := c.open(ctx, req)
	if err == nil {
		conn.Close()
	}
	return r, err
}

// Hello returns the monitor's pid and the protocol that it speaks.
func (c Client) Hello(ctx context.Context) (pid, protocol int, err error) {
	r, err := c.call(ctx, Request{Op: opHello})
	return r.PID, r.Protocol, err
}

// Start starts a container. An error carries what the OCI runtime said.
func (c Client) Start(ctx context.Context, req StartRequest) (Container, error) {
	r, err := c.call(ctx, Request{Op: opStart, Start: &req})
	if err != nil {
		return Container{}, err
	}
	return *r.Container, nil
}

// Signal sends a signal to a container's first process.
func (c Client) Signal(ctx context.Context, id string, sig syscall.Signal) error {
	_, err := c.call(ctx, Request{Op: opSignal, ID: id, Signal: int(sig)})
	return err
}

// Reopen makes the log go on in a new file at its path.
func (c Client) Reopen(ctx context.Context, id string) error {
	_, err := c.call(ctx, Request{Op: opReopen, ID: id})
	return err
}

// Resize sets the size of a container's terminal.
func (c Client) Resize(ctx context.Context, id string, rows, columns uint16) error {
	_, err := c.call(ctx, Request{Op: opResize, ID: id, Rows: rows, Columns: columns})
	return err
}

// Forget drops an ended container.
func (c Client) Forget(ctx context.Context, id string) error {
	_, err := c.call(ctx, Request{Op: opForget, ID: id})
	return err
}

// OCI runs another command of the OCI runtime, update for instance.
func (c Client) OCI(ctx context.Context, req OCIRequest) error {
	_, err := c.call(ctx, Request{Op: opOCI, OCI: &req})
	return err
}

// Quit ends the monitor; it refuses while a container runs.
func (c Client) Quit(ctx context.Context) error {
	_, err := c.call(ctx, Request{Op: opQuit})
	return err
}

// Replace makes the monitor become the program at path, with the same pid and
// the same children. Watches break and are to be opened again.
func (c Client) Replace(ctx context.Context, path string) error {
	_, err := c.call(ctx, Request{Op: opReplace, Path: path})
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil // became another program before it could answer
	}
	return err
}

// Watch calls handle for every container, then synced once, then handle for
// every container that ends, until ctx ends or the monitor goes.
func (c Client) Watch(ctx context.Context, handle func(Container), synced func()) error {
	conn, r, err := c.open(ctx, Request{Op: opWatch})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	for {
		switch {
		case r.Synced:
			synced()
		case r.Container != nil:
			handle(*r.Container)
		}
		if r, err = receiveReply(conn); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// A Process is what Exec started.
type Process struct {
	PID  int
	conn *net.UnixConn
}

// Exec runs a process in a container with three files as its streams; the
// caller closes its own copies of them.
func (c Client) Exec(ctx context.Context, req ExecRequest, stdin, stdout, stderr *os.File) (*Process, error) {
	conn, r, err := c.open(ctx, Request{Op: opExec, Exec: &req}, stdin, stdout, stderr)
	if err != nil {
		return nil, err
	}
	return &Process{PID: r.PID, conn: conn}, nil
}

// Wait returns how the process ended. When ctx ends first the process is killed.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	defer p.conn.Close()
	// Half-closing is the order to kill; the answer still comes.
	stop := context.AfterFunc(ctx, func() { _ = p.conn.CloseWrite() })
	defer stop()
	r, err := receiveReply(p.conn)
	if err != nil {
		return Exit{}, err
	}
	if r.Exit == nil {
		return Exit{}, errors.New("the container monitor sent no exit status")
	}
	return *r.Exit, nil
}

// An Attachment is a connection to a container's streams.
type Attachment struct {
	conn *net.UnixConn
	mu   sync.Mutex // orders frames
}

// Attach connects to a running container. Output starts with what is written
// from now on.
func (c Client) Attach(ctx context.Context, req AttachRequest) (*Attachment, error) {
	conn, _, err := c.open(ctx, Request{Op: opAttach, Attach: &req})
	if err != nil {
		return nil, err
	}
	return &Attachment{conn: conn}, nil
}

// Write sends input.
func (a *Attachment) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := writeFrame(a.conn, frameStdin, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseStdin says that no more input follows.
func (a *Attachment) CloseStdin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return writeFrame(a.conn, frameCloseStdin, nil)
}

// Copy writes output to stdout and stderr, either of which may be nil, until
// the container has ended or the attachment is closed.
func (a *Attachment) Copy(stdout, stderr io.Writer) error {
	buf := make([]byte, maxFrame)
	for {
		kind, p, err := readFrame(a.conn, buf)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) {
				return nil
			}
			return err
		}
		var w io.Writer
		switch kind {
		case frameStdout:
			w = stdout
		case frameStderr:
			w = stderr
		}
		if w == nil {
			continue
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
}

// Close leaves the container.
func (a *Attachment) Close() error { return a.conn.Close() }
