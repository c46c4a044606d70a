package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// SocketName is the monitor's socket below its run directory.
const SocketName = "monitor.sock"

// Ensure returns a client of the monitor of a run directory. One that is another
// program than ours becomes ours, and keeps its containers. If none answers it
// starts program as a session of its own, which outlives the caller; started
// then delivers the end of that process, once.
//
// The socket is made here and handed over, so that a connection succeeds at
// once and nobody has to wait for a file to appear.
func Ensure(ctx context.Context, program string, cfg ServerConfig) (c Client, started <-chan error, err error) {
	c = Client{Socket: filepath.Join(cfg.RunDir, SocketName)}
	switch pid, protocol, err := c.Hello(ctx); {
	case err == nil && protocol == Protocol:
		if !runs(pid, program) {
			// Of another version, which would do: it refuses while a terminal would be lost.
			_ = c.Replace(ctx, program)
			_, _, err = c.Hello(ctx)
			return c, nil, err
		}
		return c, nil, nil
	case err == nil:
		if err := c.Replace(ctx, program); err != nil {
			return c, nil, fmt.Errorf("replace a container monitor of another version: %w", err)
		}
		if _, _, err = c.Hello(ctx); err == nil {
			return c, nil, nil
		}
		return c, nil, err
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist):
		return c, nil, err
	}
	if err := os.Remove(c.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return c, nil, err
	}
	started, err = spawn(program, c.Socket, cfg)
	return c, started, err
}

// runs reports whether the process runs the program, or it cannot be told.
func runs(pid int, program string) bool {
	its, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return true
	}
	ours, err := os.Stat(program)
	return err != nil || os.SameFile(its, ours)
}

func spawn(program, socket string, cfg ServerConfig) (<-chan error, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for the container monitor: %w", err)
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, err
	}
	listener, err := l.File()
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	log, err := os.OpenFile(filepath.Join(cfg.StateDir, "monitor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p, err := os.StartProcess(program, []string{program, "serve", cfg.StateDir, cfg.RunDir}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=" + os.Getenv("PATH")},
		Files: []*os.File{null, null, log, listener},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start the container monitor: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		state, err := p.Wait()
		if err == nil && !state.Success() {
			err = fmt.Errorf("container monitor: %s, see %s", state, log.Name())
		}
		ended <- err
	}()
	return ended, nil
}
