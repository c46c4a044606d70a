package netlab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/process"
)

// readyWords are in the line that "peri up" prints when the node is ready, stageMark
// begins those in which a daemon reports its stages.
const (
	readyWords = "The cluster is ready"
	stageMark  = "✓ "
)

// stages are those by which a daemon is known to be ready, where it has another name.
var stages = map[string]string{"controller-manager": "controllers", "containers": "runtime"}

// A Peri is one process of the binary under test: "peri up" or a single daemon.
type Peri struct {
	cmd   *exec.Cmd
	log   string // the file with its whole output
	ready chan struct{}
	done  chan struct{}
	err   error // how it ended, once done is closed
}

// Flags are those that keep a peri inside this machine.
func (m *Machine) Flags() []string {
	return append([]string{
		"--state-dir", m.StateDir(), "--run-dir", m.RunDir(), "--node-name", m.config.Name,
		"--cgroup-root", m.cgroup, "--kubeconfig-path", "", "--resolv-conf", filepath.Join(m.dir, "resolv.conf"),
	}, m.config.Flags...)
}

// sharedDisk keeps a node from looking at a disk that tests share with everything else.
var sharedDisk = []string{"--eviction-hard=memory.available=10Mi", "--image-gc-high-threshold=100"}

// Up starts "peri up" and returns when the node is ready. When it ends before, the
// error has the last lines that it printed.
func (m *Machine) Up(ctx context.Context, flags ...string) (*Peri, error) {
	return m.run(ctx, readyWords, append(append([]string{"up"}, m.Flags()...), flags...))
}

// Server starts "peri server" and returns when it is ready, with its node if it has one.
func (m *Machine) Server(ctx context.Context, flags ...string) (*Peri, error) {
	return m.run(ctx, readyWords, slices.Concat([]string{"server"}, m.Flags(), sharedDisk, flags))
}

// Agent starts "peri agent" and returns when its node is ready.
func (m *Machine) Agent(ctx context.Context, flags ...string) (*Peri, error) {
	return m.run(ctx, "Node "+m.config.Name+" is ready", slices.Concat([]string{"agent"}, m.Flags(), sharedDisk, flags))
}

// Daemon starts one part of a cluster alone, "peri scheduler", and returns when it
// has reported that it is ready.
func (m *Machine) Daemon(ctx context.Context, name string, flags ...string) (*Peri, error) {
	stage := name
	if s, ok := stages[name]; ok {
		stage = s
	}
	args := append([]string{name}, m.Flags()...)
	if name == "kubelet" {
		args = append(args, sharedDisk...)
	}
	return m.run(ctx, stageMark+stage+" ", append(args, flags...))
}

// Hollow starts "peri hollow" and returns when its nodes are registered.
func (m *Machine) Hollow(ctx context.Context, flags ...string) (*Peri, error) {
	return m.run(ctx, "nodes registered", append([]string{"hollow"}, flags...))
}

func (m *Machine) run(ctx context.Context, ready string, args []string) (*Peri, error) {
	p, err := m.start(ready, args)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.started = append(m.started, p)
	m.mu.Unlock()
	return p, p.WaitReady(ctx)
}

// start starts peri in the background; a line with the words in ready makes it ready.
func (m *Machine) start(ready string, args []string) (*Peri, error) {
	logFile, err := os.CreateTemp(m.dir, "peri-"+args[0]+"-*.log")
	if err != nil {
		return nil, err
	}
	p := &Peri{log: logFile.Name(), ready: make(chan struct{}), done: make(chan struct{})}
	p.cmd = m.Command(context.Background(), "peri", args...)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, logFile.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, logFile.Close(), out.Close(), in.Close())
	}
	_ = in.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		defer logFile.Close()
		defer out.Close()
		lines := bufio.NewReader(out)
		for announced := false; ; {
			line, err := lines.ReadString('\n')
			_, _ = io.WriteString(logFile, line) // the test fails on what it reads
			if !announced && strings.Contains(line, ready) {
				announced = true
				close(p.ready)
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		p.err = p.cmd.Wait()
		<-copied
		close(p.done)
	}()
	return p, nil
}

// WaitReady returns when the process has said that it is ready, or has ended.
func (p *Peri) WaitReady(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return fmt.Errorf("peri ended before it was ready: %w\n%s", p.err, p.Tail(30))
	case <-ctx.Done():
		return fmt.Errorf("peri is not ready: %w\n%s", context.Cause(ctx), p.Tail(60))
	}
}

// Done is closed when the process has ended.
func (p *Peri) Done() <-chan struct{} { return p.done }

// Log is the file with all that the process has printed so far.
func (p *Peri) Log() string { return p.log }

// Tail returns the last lines of the log.
func (p *Peri) Tail(lines int) string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.SplitAfter(string(data), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// Progress is the part of the output that tells which stages are ready.
func (p *Peri) Progress() string {
	var out []string
	for line := range strings.Lines(p.Tail(1000)) {
		if strings.Contains(line, stageMark) || strings.Contains(line, readyWords) {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(out, "\n")
}

// Signal sends a signal to the process itself: what was started from here is
// nsenter, which has it as its only child.
func (p *Peri) Signal(sig syscall.Signal) error {
	pid, err := p.PID()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}

// PID is the process's number, seen from outside the machine. It waits for a
// process that is just being started.
func (p *Peri) PID() (int, error) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		pid, err := child(p.cmd.Process.Pid)
		if err == nil {
			return pid, nil
		}
		select {
		case <-again.C:
		case <-p.done:
			return 0, err
		}
	}
}

// Kill is kill -9: it returns when the process is gone.
func (p *Peri) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop ends the process as systemd does and returns its error when that does not
// end well.
func (p *Peri) Stop(ctx context.Context) error {
	select {
	case <-p.done:
		return fmt.Errorf("peri had ended: %w\n%s", p.err, p.Tail(30))
	default:
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("peri does not stop: %w\n%s", context.Cause(ctx), p.Tail(60))
	}
	if p.err != nil {
		return fmt.Errorf("peri ended with %w\n%s", p.err, p.Tail(30))
	}
	return nil
}

// Down ends the node for good: "peri down --purge".
func (m *Machine) Down(ctx context.Context) error {
	_, err := m.Output(ctx, "peri", append([]string{"down", "--purge"}, m.Flags()...)...)
	return err
}

// wait returns when all that was started has ended.
func (m *Machine) wait() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.started {
		<-p.done
	}
	m.started = nil
}

// child finds the only child of a process.
func child(parent int) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if above, err := process.Parent(pid); err == nil && above == parent {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("process %d has no child: it has ended", parent)
}
