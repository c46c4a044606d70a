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
	parent, _ := process.Parent(r.Process.PID)
	own := parent == os.Getpid()
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
// itself. The pid stays, and with it the children; so does the listener.
func (s *Server) replace(path string) error {
	s.mu.Lock()
	if n := len(s.starting); n > 0 {
		s.mu.Unlock()
		return fmt.Errorf("%d containers are being started", n)
	}
	for _, c := range s.containers {
		if c.console != nil && c.state().Exit == nil {
			s.mu.Unlock()
			return fmt.Errorf("container %s has a terminal, which would be lost", c.Start.ID)
		}
	}
	s.mu.Unlock()
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, listenerFD, syscall.F_SETFD, 0); errno != 0 {
		return errno
	}
	return syscall.Exec(path, []string{path, "serve", s.cfg.StateDir, s.cfg.RunDir}, os.Environ())
}
