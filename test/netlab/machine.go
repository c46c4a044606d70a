package netlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/periplus/periplus/lab"
	"github.com/periplus/periplus/linux/cgroup"
)

// Address is the machine's own, unless it is told otherwise. Machines without a
// segment do not see each other, so all have the same.
const Address = "198.51.100.10"

// network is that of all machines.
const network = 24

// A Config describes a machine.
type Config struct {
	// Peri is the binary under test.
	Peri string
	// Name is the host name and the node's name; default "node".
	Name string
	// Address; default Address.
	Address string
	// Segment is what the machine is plugged into; nil: nothing.
	Segment *lab.Segment
	// Hosts are further lines of its /etc/hosts.
	Hosts string
	// Flags are further ones for every "peri up".
	Flags []string
}

// NewSegment makes a network between machines that leads nowhere. The caller closes
// it after the machines.
func NewSegment() (*lab.Segment, error) { return lab.NewSegment(lab.SegmentConfig{Name: "segment"}) }

// A Machine is a lab.Machine with a node's directories.
type Machine struct {
	*lab.Machine
	config Config
	dir    string // all files of the machine
	cgroup string // its root in each hierarchy
	// mounted is what was mounted before peri was ever started.
	mounted map[string]bool

	mu      sync.Mutex
	started []*Peri // guarded by mu
}

// New makes a machine. The caller closes it. It needs root.
func New(c Config) (*Machine, error) {
	if c.Name == "" {
		c.Name = "node"
	}
	if c.Address == "" {
		c.Address = Address
	}
	address, err := netip.ParseAddr(c.Address)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "netlab-")
	if err != nil {
		return nil, err
	}
	m := &Machine{config: c, dir: dir, cgroup: "/" + filepath.Base(dir)}
	// Containers' root file systems are reached through here by other users.
	err = os.Chmod(dir, 0o711) //nolint:gosec // meant so
	if err == nil {
		m.Machine, err = lab.Boot(lab.MachineConfig{
			Name: c.Name, Dir: dir, Address: netip.PrefixFrom(address, network), Segment: c.Segment,
			Hosts: c.Hosts, Resolvers: "# This machine knows no resolver.\n",
		})
	}
	if err == nil {
		err = m.noteMounts()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a test machine: %w", err), os.RemoveAll(dir))
	}
	return m, nil
}

func (m *Machine) noteMounts() error {
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
	if err := m.Machine.PowerOff(); err != nil {
		return err
	}
	m.wait()
	if err := m.PowerOn(); err != nil {
		return err
	}
	return m.noteMounts()
}

// Close ends the machine with everything in it and removes its files.
func (m *Machine) Close() error {
	err := m.Machine.Close()
	m.wait()
	return errors.Join(err, cgroup.Remove(m.cgroup), os.RemoveAll(m.dir))
}

// Name is the host name and the node's name.
func (m *Machine) Name() string { return m.config.Name }

// Peri is the binary under test.
func (m *Machine) Peri() string { return m.config.Peri }

// CgroupRoot is the cgroup below which everything of the machine is to be.
func (m *Machine) CgroupRoot() string { return m.cgroup }

// StateDir, RunDir and Kubeconfig are those of the node.
func (m *Machine) StateDir() string   { return filepath.Join(m.dir, "state") }
func (m *Machine) RunDir() string     { return filepath.Join(m.dir, "run") }
func (m *Machine) Kubeconfig() string { return filepath.Join(m.StateDir(), "kubeconfig.yaml") }

// enter is the command line that runs another inside, in the caller's directory.
func (m *Machine) enter() []string {
	return append(m.Enter(), "setpriv", "--pdeathsig", "TERM", "/bin/sh", "-c", `cd "$0" && exec "$@"`)
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
