package lab

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/periplus/periplus/linux/netns"
	"github.com/periplus/periplus/linux/process"
)

//go:embed machine.sh
var setup string

// A MachineConfig describes a machine.
type MachineConfig struct {
	// Name is its host name.
	Name string
	// Dir has its files; it exists, is the same inside and outside, and is the
	// caller's to remove.
	Dir string
	// Address is its own, with the length of the network.
	Address netip.Prefix
	// Gateway leads elsewhere; default: the first address of the network.
	Gateway netip.Addr
	// Segment is what it is plugged into; nil: nothing.
	Segment *Segment
	// Hosts are lines of its /etc/hosts besides localhost and itself; Resolvers is
	// its /etc/resolv.conf.
	Hosts, Resolvers string
	// Stay lets it live on when this process ends.
	Stay bool
}

// A Machine is a set of namespaces.
type Machine struct {
	config MachineConfig
	pid    int
	init   *exec.Cmd // nil for a machine that another process has made
	stdin  io.Closer
}

// Boot starts a machine. It needs root.
func Boot(c MachineConfig) (*Machine, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a machine needs root, to make namespaces")
	}
	m := &Machine{config: c}
	files := map[string]string{
		"resolv.conf": c.Resolvers,
		"hosts":       "127.0.0.1 localhost\n" + c.Address.Addr().String() + " " + c.Name + "\n" + c.Hosts,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // as in /etc
			return nil, err
		}
	}
	if err := m.boot(); err != nil {
		return nil, fmt.Errorf("machine %s: %w", c.Name, err)
	}
	return m, nil
}

// boot starts the machine's first process and waits until it has set all up.
func (m *Machine) boot() error {
	mode := "tied"
	if m.config.Stay {
		mode = "stay"
	}
	m.init = exec.Command("/bin/sh", "-euc", setup, "machine.sh", m.config.Dir, m.config.Name, mode) //nolint:noctx // ends with its standard input
	m.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// Apart from the others: for this one Go makes all mounts private as well.
		Unshareflags: syscall.CLONE_NEWNS,
		Setsid:       m.config.Stay,
		// Not in the terminal's foreground group: an interrupt there is for whoever
		// made the machine, who ends it.
		Setpgid: !m.config.Stay,
	}
	problem := &bytes.Buffer{}
	log, err := os.OpenFile(filepath.Join(m.config.Dir, "machine.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	m.init.Stderr = log
	if m.stdin, err = m.init.StdinPipe(); err != nil {
		return err
	}
	stdout, err := m.init.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.init.Start(); err != nil {
		return err
	}
	m.pid = m.init.Process.Pid
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil && line == "ready\n" {
		if err = m.plug(); err == nil {
			err = m.remember()
		}
	}
	if err != nil {
		_ = m.init.Process.Kill()
		err = errors.Join(err, m.init.Wait(), m.stdin.Close())
		if data, e := os.ReadFile(log.Name()); e == nil {
			problem.Write(data)
		}
		return fmt.Errorf("set up: %w: %s", err, problem.String())
	}
	return nil
}

func pidFile(dir string) string { return filepath.Join(dir, "machine.pid") }

// remember lets another process find the machine.
func (m *Machine) remember() error {
	id, err := process.Identify(m.pid)
	if err != nil {
		return err
	}
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return os.WriteFile(pidFile(m.config.Dir), data, 0o600)
}

// Find returns the running machine in a directory, or nil.
func Find(c MachineConfig) *Machine {
	data, err := os.ReadFile(pidFile(c.Dir))
	if err != nil {
		return nil
	}
	var id process.Identity
	if json.Unmarshal(data, &id) != nil || !id.Alive() {
		return nil
	}
	return &Machine{config: c, pid: id.PID}
}

// PowerOff ends every process of the machine at once, as a power cut does, and
// returns when they are gone. Its files stay.
func (m *Machine) PowerOff() error {
	defer os.Remove(pidFile(m.config.Dir))
	if m.init != nil {
		err := m.init.Process.Kill()
		_ = m.init.Wait() // it was killed
		_ = m.stdin.Close()
		return err
	}
	p, err := process.Open(m.pid)
	if err != nil {
		return nil //nolint:nilerr // it has ended
	}
	defer p.Close()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.Wait()
}

// PowerOn starts a machine that was powered off again.
func (m *Machine) PowerOn() error { return m.boot() }

// Close ends the machine with everything in it.
func (m *Machine) Close() error {
	if m.config.Stay || m.init == nil {
		return m.PowerOff()
	}
	defer os.Remove(pidFile(m.config.Dir))
	_ = m.stdin.Close()
	return m.init.Wait()
}

// PID is the machine's first process, as this process sees it.
func (m *Machine) PID() int { return m.pid }

// Dir has the machine's files.
func (m *Machine) Dir() string { return m.config.Dir }

// Address is the machine's own.
func (m *Machine) Address() netip.Addr { return m.config.Address.Addr() }

// NetNS is the path of its network namespace.
func (m *Machine) NetNS() string { return fmt.Sprintf("/proc/%d/ns/net", m.pid) }

// Do runs f on a thread inside the machine's network. Goroutines that f starts are
// not in it.
func (m *Machine) Do(f func() error) error {
	ns, err := netns.Open(m.NetNS())
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(f)
}

// Enter is the beginning of a command line that runs the rest of it inside.
func (m *Machine) Enter() []string {
	return []string{"nsenter", "--target", strconv.Itoa(m.pid), "--mount", "--net", "--uts", "--ipc", "--pid", "--"}
}
