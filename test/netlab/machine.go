package netlab

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/periplus/periplus/linux/cgroup"
)

//go:embed machine.sh
var setup string

// Address is the machine's own. Machines do not see each other, so all have the same.
const Address = "198.51.100.10"

// A Config describes a machine.
type Config struct {
	// Peri is the binary under test.
	Peri string
	// Name is the host name and the node's name; default "node".
	Name string
	// Flags are further ones for every "peri up".
	Flags []string
}

// A Machine is a set of namespaces with a node's directories.
type Machine struct {
	config Config
	dir    string // all files of the machine
	cgroup string // its root in each hierarchy
	init   *exec.Cmd
	stdin  io.Closer
	// mounted is what was mounted before peri was ever started.
	mounted map[string]bool

	mu      sync.Mutex
	started []*Peri // guarded by mu
}

// New makes a machine. The caller closes it. It needs root.
func New(c Config) (*Machine, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a test machine needs root, to make namespaces")
	}
	if c.Name == "" {
		c.Name = "node"
	}
	dir, err := os.MkdirTemp("", "netlab-")
	if err != nil {
		return nil, err
	}
	m := &Machine{config: c, dir: dir, cgroup: "/" + filepath.Base(dir)}
	if err := m.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a test machine: %w", err), os.RemoveAll(dir))
	}
	return m, nil
}

// prepare writes the files of the machine and starts it.
func (m *Machine) prepare() error {
	// Containers' root file systems are reached through here by other users.
	if err := os.Chmod(m.dir, 0o711); err != nil { //nolint:gosec // meant so
		return err
	}
	files := map[string]string{
		"resolv.conf": "# This machine knows no resolver.\n",
		"hosts":       "127.0.0.1 localhost\n" + Address + " " + m.config.Name + "\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // as in /etc
			return err
		}
	}
	return m.boot()
}

// boot starts the machine's first process and waits until it has set all up.
func (m *Machine) boot() error {
	m.init = exec.Command("/bin/sh", "-euc", setup, "machine.sh", m.dir, Address, m.config.Name) //nolint:noctx // ends with its standard input
	m.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// Apart from the others: for this one Go makes all mounts private as well.
		Unshareflags: syscall.CLONE_NEWNS,
	}
	var problem bytes.Buffer
	m.init.Stderr = &problem
	stdin, err := m.init.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := m.init.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.init.Start(); err != nil {
		return err
	}
	m.stdin = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		_ = stdin.Close()
		return fmt.Errorf("set up: %w: %s", errors.Join(err, m.init.Wait()), problem.String())
	}
	mounts, err := m.Mounts()
	if err != nil {
		return err
	}
	m.mounted = map[string]bool{}
	for _, point := range mounts {
		m.mounted[point] = true
	}
	return nil
}

// PowerOff ends every process of the machine at once, as a power cut does, and
// starts the machine again. Its files stay.
func (m *Machine) PowerOff() error {
	if err := m.init.Process.Kill(); err != nil {
		return err
	}
	_ = m.init.Wait() // it was killed
	_ = m.stdin.Close()
	m.wait()
	return m.boot()
}

// Close ends the machine with everything in it and removes its files.
func (m *Machine) Close() error {
	_ = m.stdin.Close()
	err := m.init.Wait()
	m.wait()
	return errors.Join(err, cgroup.Remove(m.cgroup), os.RemoveAll(m.dir))
}

// Peri is the binary under test.
func (m *Machine) Peri() string { return m.config.Peri }

// Dir is a directory that is the same inside and outside.
func (m *Machine) Dir() string { return m.dir }

// StateDir, RunDir and Kubeconfig are those of the node.
func (m *Machine) StateDir() string   { return filepath.Join(m.dir, "state") }
func (m *Machine) RunDir() string     { return filepath.Join(m.dir, "run") }
func (m *Machine) Kubeconfig() string { return filepath.Join(m.StateDir(), "kubeconfig.yaml") }

// enter is the command line that runs another inside, in the caller's directory.
func (m *Machine) enter() []string {
	return []string{"nsenter", "--target", strconv.Itoa(m.init.Process.Pid), "--mount", "--net", "--uts", "--ipc", "--pid",
		"--", "setpriv", "--pdeathsig", "TERM", "/bin/sh", "-c", `cd "$0" && exec "$@"`}
}

// Command is a program run inside the machine, with KUBECONFIG set. Names are
// looked up in the machine's PATH; "peri" and "kubectl" are the binary under test.
func (m *Machine) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	wd, err := os.Getwd()
	if err != nil {
		wd = "/"
	}
	in := m.enter()
	if name == "peri" || name == "kubectl" {
		in = append(in, wd, m.config.Peri)
		if name == "kubectl" {
			in = append(in, "kubectl")
		}
	} else {
		in = append(in, wd, name)
	}
	cmd := exec.CommandContext(ctx, in[0], append(in[1:], args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+m.Kubeconfig())
	return cmd
}

// Output runs a command inside and returns what it printed; its error has the
// rest.
func (m *Machine) Output(ctx context.Context, name string, args ...string) (string, error) {
	var out, problem bytes.Buffer
	cmd := m.Command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, out.String(), problem.String())
	}
	return out.String(), nil
}

// WriteCommands puts a script for each program into dir that runs it inside the
// machine, in the directory and environment of its caller: with dir in PATH a
// test types commands as a person would there.
func (m *Machine) WriteCommands(dir string, names ...string) error {
	for _, name := range names {
		target := ""
		switch name {
		case "peri":
			target = m.config.Peri
		case "kubectl":
			target = m.config.Peri + " kubectl"
		default:
			path, err := exec.LookPath(name)
			if err != nil {
				return err
			}
			target = path
		}
		in := m.enter()
		// The caller's PATH leads to these scripts, and from inside there is no way in.
		script := "#!/bin/sh\nexport PATH='" + os.Getenv("PATH") + "'\nexec " + strings.Join(in[:len(in)-1], " ") + " '" + in[len(in)-1] + `' "$PWD" ` + target + ` "$@"` + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil { //nolint:gosec // a program
			return err
		}
	}
	return nil
}

// Listen opens a listener inside the machine, for a server in this process.
func (m *Machine) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var l net.Listener
	err := m.Do(func() error {
		var err error
		l, err = new(net.ListenConfig).Listen(ctx, network, address)
		return err
	})
	return l, err
}
