package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/process"
)

var execCounter atomic.Uint64

// serveExec runs a process in a container with the client's files as its
// streams. The connection carries a Reply with the pid, then one with the exit;
// a client that closes it before has the process killed.
func (s *Server) serveExec(conn *net.UnixConn, req ExecRequest, files []*os.File) {
	if len(files) != 3 {
		_ = reply(conn, failure(errors.New("exec needs three files")))
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		// The client sends nothing more: reading ends when it goes.
		var b [1]byte
		_, _ = conn.Read(b[:])
		cancel()
	}()
	pid, ended, err := s.exec(ctx, req, [3]*os.File(files))
	closeAll(files)
	if err != nil {
		_ = reply(conn, failure(err))
		return
	}
	// Without a client nobody reads the answer, but the process must not stay.
	_ = reply(conn, Reply{PID: pid})
	var status syscall.WaitStatus
	select {
	case status = <-ended:
	case <-ctx.Done():
		_ = s.reaper.signal(pid, syscall.SIGKILL)
		status = <-ended
	}
	_ = reply(conn, Reply{Exit: &Exit{Code: process.ExitCode(status), At: time.Now()}})
}

func (s *Server) exec(ctx context.Context, req ExecRequest, files [3]*os.File) (int, <-chan syscall.WaitStatus, error) {
	name := filepath.Join(s.cfg.RunDir, "exec-"+strconv.FormatUint(execCounter.Add(1), 36))
	args := []string{"exec", "--detach", "--pid-file", name, "--process", req.Process}
	if req.ConsoleSocket != "" {
		args = append(args, "--tty", "--console-socket", req.ConsoleSocket)
	}
	s.reaper.begin()
	defer s.reaper.end()
	defer os.Remove(name)
	if err := s.call(ctx, req.OCI, name+".log", files, append(args, req.ID)...); err != nil {
		return 0, nil, err
	}
	pid, err := readPID(name)
	if err != nil {
		return 0, nil, fmt.Errorf("OCI runtime left no pid: %w", err)
	}
	return pid, s.reaper.adopt(pid), nil
}

// serveOCI runs another command of the OCI runtime.
func (s *Server) serveOCI(conn *net.UnixConn, req OCIRequest) {
	_ = reply(conn, failureOrNothing(s.oci(req)))
}

func (s *Server) oci(req OCIRequest) error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	name := filepath.Join(s.cfg.RunDir, "oci-"+strconv.FormatUint(execCounter.Add(1), 36))
	stdin := null
	if len(req.Input) > 0 {
		if err := os.WriteFile(name, req.Input, 0o600); err != nil {
			return err
		}
		defer os.Remove(name)
		if stdin, err = os.Open(name); err != nil {
			return err
		}
		defer stdin.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.call(ctx, req.OCI, name+".log", [3]*os.File{stdin, null, null}, req.Args...)
}
