package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/process"
)

// unknownCode is what an end that nobody saw is reported as, as containerd does.
const unknownCode = 255

// adopt takes over what an earlier monitor left: containers that still run, and
// those that have ended, with or without a recorded exit.
func (s *Server) adopt() {
	paths, _ := filepath.Glob(filepath.Join(s.cfg.StateDir, "containers", "*", "monitor.json"))
	for _, path := range paths {
		var r record
		if readJSON(path, &r) != nil || r.Start.ID == "" {
			continue // half-written by a machine that lost power: its container is gone
		}
		// The directory may have been moved with the state directory.
		r.Start.Dir = filepath.Dir(path)
		if c := s.adoptOne(r); c != nil {
			s.containers[r.Start.ID] = c
		}
	}
}

func (s *Server) adoptOne(r record) *container {
	var exit Exit
	if readJSON(filepath.Join(r.Start.Dir, "exit.json"), &exit) == nil {
		c := &container{record: r, log: &logFile{}, ended: make(chan struct{}), exit: &exit}
		close(c.ended)
		return c
	}
	c, err := newContainer(r)
	if err != nil {
		c = &container{record: r, log: &logFile{}, clients: map[*attachment]bool{}, ended: make(chan struct{})}
	}
	own := descends(r.Process.PID, os.Getpid())
	if !r.Process.Alive() && !own {
		c.finish(Exit{Code: unknownCode, Unknown: true, At: time.Now()})
		return c
	}
	c.reopen()
	c.copyOutput()
	if own {
		// We are the same process after replace: still the parent.
		ended := s.reaper.adopt(r.Process.PID)
		go func() {
			status := <-ended
			c.finish(Exit{Code: process.ExitCode(status), At: time.Now()})
			s.publish(c)
		}()
		return c
	}
	handle, err := process.Open(r.Process.PID)
	if err != nil {
		c.finish(Exit{Code: unknownCode, Unknown: true, At: time.Now()})
		return c
	}
	go func() {
		_ = handle.Wait()
		exit := Exit{Code: unknownCode, Unknown: true, At: time.Now()}
		if status, ok := handle.ExitStatus(); ok {
			exit.Code, exit.Unknown = process.ExitCode(status), false
		}
		handle.Close()
		c.finish(exit)
		s.publish(c)
	}()
	return c
}

// descends reports whether pid is a descendant of another process. A container that was
// started just before the monitor was replaced may still be the OCI runtime's child, which
// is about to end; then it becomes the monitor's, as the nearest subreaper's.
func descends(pid, from int) bool {
	for pid > 1 {
		parent, err := process.Parent(pid)
		if err != nil {
			return false
		}
		if parent == from {
			return true
		}
		pid = parent
	}
	return false
}

// reopen opens our ends of the pipes again. A tty's master end died with the
// earlier monitor.
func (c *container) reopen() {
	if c.Start.TTY {
		return
	}
	_ = c.openOutputs()
	if c.Start.Stdin && !c.Start.StdinOnce {
		c.stdin, _ = os.OpenFile(c.path("stdin"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	}
}

// replace makes this process another program, usually a newer version of
// itself. The pid stays, and with it the children; so does the listener. What
// containers write meanwhile waits in their pipes.
func (s *Server) replace(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.starting); n > 0 {
		return fmt.Errorf("%d containers are being started", n)
	}
	var running []*container
	for _, c := range s.containers {
		if c.state().Exit != nil {
			continue
		}
		if c.console != nil {
			return fmt.Errorf("container %s has a terminal, which would be lost", c.Start.ID)
		}
		running = append(running, c)
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, listenerFD, syscall.F_SETFD, 0); errno != 0 {
		return errno
	}
	for _, c := range running {
		c.holdOutput()
	}
	err := syscall.Exec(path, []string{path, "serve", s.cfg.StateDir, s.cfg.RunDir}, os.Environ())
	for _, c := range running { // we are still who we were
		c.copyOutput()
	}
	return err
}
