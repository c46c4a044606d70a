package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/process"
)

// drainTime is how long output may still come after a container's first process
// has ended: only processes outside its PID namespace can hold a pipe then.
const drainTime = 250 * time.Millisecond

// record is monitor.json.
type record struct {
	Start   StartRequest
	Process process.Identity
	Started time.Time
}

// A container that runs, or has ended and is not forgotten yet.
type container struct {
	record
	log     *logFile
	console *os.File   // tty: the master end; else nil
	outputs []*os.File // read ends of stdout and stderr, or the console
	copies  sync.WaitGroup

	mu      sync.Mutex
	stdin   *os.File             // write end; nil: none or closed
	clients map[*attachment]bool // nil once the output has ended
	exit    *Exit
	ended   chan struct{} // closed after exit is set
}

func newContainer(r record) (*container, error) {
	log, err := openLog(r.Start.LogPath)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &container{record: r, log: log, clients: map[*attachment]bool{}, ended: make(chan struct{})}, nil
}

func (c *container) path(name string) string { return filepath.Join(c.Start.Dir, name) }

// state returns what watchers see.
func (c *container) state() *Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Container{ID: c.Start.ID, PID: c.Process.PID, Started: c.Started, Exit: c.exit}
}

// openPipes makes the named pipes and opens our ends. It returns the files for
// the container: they are open read-write, so that writing to a pipe that
// nobody reads for a while blocks instead of killing the writer.
func (c *container) openPipes() (files [3]*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files[:])
			c.closeFiles()
		}
	}()
	if files[0], err = c.openStdin(); err != nil {
		return files, err
	}
	for i, name := range []string{"stdout", "stderr"} {
		if c.Start.TTY {
			if files[i+1], err = os.OpenFile("/dev/null", os.O_RDWR, 0); err != nil {
				return files, err
			}
			continue
		}
		if err = process.Fifo(c.path(name)); err != nil {
			return files, err
		}
		if files[i+1], err = openBlocking(c.path(name), syscall.O_RDWR); err != nil {
			return files, err
		}
	}
	if !c.Start.TTY {
		err = c.openOutputs()
	}
	return files, err
}

func (c *container) openOutputs() error {
	for _, name := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(c.path(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		c.outputs = append(c.outputs, f)
	}
	return nil
}

// openStdin returns the container's end. With StdinOnce it is opened read-only,
// so that the container sees the end of its input when we close ours.
func (c *container) openStdin() (*os.File, error) {
	if !c.Start.Stdin || c.Start.TTY {
		return os.Open("/dev/null")
	}
	path := c.path("stdin")
	if err := process.Fifo(path); err != nil {
		return nil, err
	}
	// Opened read-write first: neither end alone could be opened without waiting.
	both, err := openBlocking(path, syscall.O_RDWR)
	if err != nil {
		return nil, err
	}
	if c.stdin, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err != nil || !c.Start.StdinOnce {
		return both, err
	}
	defer both.Close()
	return openBlocking(path, syscall.O_RDONLY)
}

// openBlocking opens a file whose descriptor goes to a container: the flags of
// the open file are shared with it, so the poller must stay away.
func openBlocking(path string, flags int) (*os.File, error) {
	fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// setConsole takes the tty's master end that the runtime sent.
func (c *container) setConsole(console *Console) {
	c.console = console.File
	c.outputs = []*os.File{c.console}
	if c.Start.Stdin {
		c.stdin = c.console
	}
}

// copyOutput starts to log what the container writes.
func (c *container) copyOutput() {
	for i, f := range c.outputs {
		stream, kind := "stdout", frameStdout
		if i == 1 {
			stream, kind = "stderr", frameStderr
		}
		c.copies.Go(func() {
			w := lineWriter{stream: stream}
			readAll(f, func(p []byte) {
				c.broadcast(kind, p)
				buf := entryBuffers.Get().(*[]byte)
				if *buf = w.entries((*buf)[:0], time.Now(), p); len(*buf) > 0 {
					c.log.write(*buf)
				}
				entryBuffers.Put(buf)
			})
			if rest := w.flush(nil, time.Now()); len(rest) > 0 {
				c.log.write(rest)
			}
		})
	}
}

// holdOutput returns when all that has been read is in the log, and nothing more is
// read until copyOutput is called again.
func (c *container) holdOutput() {
	for _, f := range c.outputs {
		_ = f.SetReadDeadline(time.Unix(1, 0))
	}
	c.copies.Wait()
	for _, f := range c.outputs {
		_ = f.SetReadDeadline(time.Time{})
	}
}

// What is read at once, as much as a pipe holds, and the entries that are made of it.
var (
	buffers      = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}
	entryBuffers = sync.Pool{New: func() any { return new([]byte) }}
)

// readAll calls sink with what f delivers, until it ends or its deadline has
// passed. A buffer is held only while there is something to read, so that a
// quiet container costs none.
func readAll(f *os.File, sink func([]byte)) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	for more := true; more; {
		err := conn.Read(func(fd uintptr) bool {
			buf := buffers.Get().(*[]byte)
			defer buffers.Put(buf)
			n, err := syscall.Read(int(fd), *buf)
			switch {
			case err == syscall.EAGAIN:
				return false
			case err == syscall.EINTR:
			case err != nil || n == 0: // EIO: the last user of a tty has gone
				more = false
			default:
				sink((*buf)[:n])
			}
			return true
		})
		if err != nil {
			return
		}
	}
}

// finish waits for the last output, writes exit.json, and only then lets the
// world know.
func (c *container) finish(exit Exit) {
	if c.Start.OOMFile != "" {
		exit.OOM = cgroup.OOMKills(c.Start.OOMFile) > 0
	}
	for _, f := range c.outputs {
		_ = f.SetReadDeadline(time.Now().Add(drainTime))
	}
	c.copies.Wait()
	c.closeFiles()
	_ = writeJSON(c.path("exit.json"), exit)
	c.mu.Lock()
	c.exit = &exit
	for a := range c.clients {
		a.conn.Close()
	}
	c.clients = nil
	c.mu.Unlock()
	close(c.ended)
}

func (c *container) closeFiles() {
	c.mu.Lock()
	if c.stdin != nil {
		c.stdin.Close()
		c.stdin = nil
	}
	c.mu.Unlock()
	closeAll(c.outputs)
	c.log.close()
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		os.Remove(c.path(name))
	}
}

// start runs the OCI runtime and takes over its child.
func (s *Server) start(ctx context.Context, req StartRequest) (*container, error) {
	if !s.reserve(req.ID) {
		return nil, fmt.Errorf("container %s has been started before", req.ID)
	}
	var launched *container
	defer func() { s.launched(req.ID, launched) }()
	c, err := newContainer(record{Start: req})
	if err != nil {
		return nil, err
	}
	ended, err := s.launch(ctx, c)
	if err != nil {
		return nil, err
	}
	launched = c
	c.copyOutput()
	go func() {
		status := <-ended
		c.finish(Exit{Code: process.ExitCode(status), At: time.Now()})
		s.publish(c)
	}()
	return c, nil
}

func (s *Server) launch(ctx context.Context, c *container) (<-chan syscall.WaitStatus, error) {
	files, err := c.openPipes()
	if err != nil {
		return nil, err
	}
	defer closeAll(files[:])
	args := []string{"run", "--detach", "--bundle", c.Start.Dir, "--pid-file", c.path("pid")}
	var console *ConsoleSocket
	if c.Start.TTY {
		if console, err = ListenConsole(s.cfg.RunDir); err != nil {
			c.closeFiles()
			return nil, err
		}
		defer console.Close()
		args = append(args, "--console-socket", console.Path)
	}
	s.reaper.begin()
	defer s.reaper.end()
	if err = s.call(ctx, c.Start.OCI, c.path("oci.log"), files, append(args, c.Start.ID)...); err == nil {
		if c.Start.TTY {
			var f *Console
			if f, err = console.Receive(); err == nil {
				c.setConsole(f)
			}
		}
	}
	if err != nil {
		c.closeFiles()
		return nil, err
	}
	pid, err := readPID(c.path("pid"))
	os.Remove(c.path("pid"))
	if err != nil {
		c.closeFiles()
		return nil, fmt.Errorf("OCI runtime left no pid: %w", err)
	}
	c.Started = time.Now()
	// A container that has ended already and was collected has no identity any
	// more; the reaper kept its status.
	c.Process, err = process.Identify(pid)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		c.Process, err = process.Identity{PID: pid, Boot: process.BootID()}, nil
	}
	if err == nil {
		err = writeJSON(c.path("monitor.json"), c.record)
	}
	if err != nil {
		c.closeFiles()
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return nil, err
	}
	return s.reaper.adopt(pid), nil
}
