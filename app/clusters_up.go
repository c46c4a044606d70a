package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/lab"
	"github.com/periplus/periplus/linux/cgroup"
)

// startTimeout bounds the start of one node.
const startTimeout = 2 * time.Minute

// LabOptions say what cluster is to run on this machine.
type LabOptions struct {
	Root  string // directory of all clusters
	Name  string
	Nodes int // 0: as many as it had, or 1
	// Flags are passed to the server, AgentFlags to all others.
	Flags, AgentFlags []string
	Out               io.Writer
}

// UpCluster starts a cluster of several nodes on this machine and returns when all
// are ready. Its processes go on when this one ends.
func UpCluster(ctx context.Context, c *Config, o LabOptions) (*LabCluster, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("peri up needs root, to make machines: run it with sudo")
	}
	cluster, err := prepareCluster(c, o)
	if err != nil {
		return nil, err
	}
	peri, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running binary: %w", err)
	}
	segment, err := cluster.segment()
	if err != nil {
		return nil, err
	}
	defer segment.Close()
	nodes := cluster.nodes()
	start := time.Now()
	ready := func(n labNode) { fmt.Fprintf(o.Out, "  ✓ %-12s %6.2fs\n", n.name(), time.Since(start).Seconds()) }
	if err := nodes[0].start(ctx, peri, segment, slices.Concat([]string{"server"}, sharedDisk, o.Flags)); err != nil {
		return nil, err
	}
	ready(nodes[0])
	if err := cluster.writeKubeconfig(nodes[0]); err != nil {
		return nil, err
	}
	if len(nodes) == 1 {
		return cluster, nil
	}
	token, err := nodes[0].token(ctx, peri)
	if err != nil {
		return nil, err
	}
	server := "https://" + net.JoinHostPort(nodes[0].address().String(), strconv.Itoa(c.APIPort))
	var group errgroup.Group
	for _, n := range nodes[1:] {
		group.Go(func() error {
			err := n.start(ctx, peri, segment, slices.Concat([]string{"agent", "--server", server, "--token", token}, sharedDisk, o.AgentFlags))
			if err == nil {
				ready(n)
			}
			return err
		})
	}
	return cluster, group.Wait()
}

// prepareCluster reads or makes the record of a cluster that does not run.
func prepareCluster(c *Config, o LabOptions) (*LabCluster, error) {
	cluster, err := openCluster(o.Root, c.CgroupRoot, o.Name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if o.Nodes == 0 {
			o.Nodes = 1
		}
		if err := checkCluster(o.Name, o.Nodes); err != nil {
			return nil, err
		}
		others, err := allClusters(o.Root, c.CgroupRoot)
		if err != nil {
			return nil, err
		}
		network, err := freeNetwork(others)
		if err != nil {
			return nil, err
		}
		cluster = &LabCluster{Name: o.Name, Nodes: o.Nodes, Network: network, dir: filepath.Join(o.Root, o.Name), cgroup: filepath.Join(c.CgroupRoot, "periplus-"+o.Name)}
	case err != nil:
		return nil, err
	case cluster.running() > 0:
		return nil, fmt.Errorf("cluster %s runs already: export KUBECONFIG=%s, or end it with peri down --name %s", o.Name, cluster.Kubeconfig(), o.Name)
	default:
		if o.Nodes != 0 {
			if err := checkCluster(o.Name, o.Nodes); err != nil {
				return nil, err
			}
			cluster.Nodes = max(cluster.Nodes, o.Nodes)
		}
	}
	return cluster, cluster.save()
}

// start boots a node's machine, starts peri in it and waits until it is ready.
func (n labNode) start(ctx context.Context, peri string, s *lab.Segment, args []string) error {
	if err := os.MkdirAll(n.dir(), 0o711); err != nil { //nolint:gosec // containers' users pass through
		return fmt.Errorf("node %s: %w", n.name(), err)
	}
	m, err := lab.Boot(n.machine(s))
	if err != nil {
		return err
	}
	ready, err := listenReady(n.notify())
	if err != nil {
		return err
	}
	defer ready.Close()
	log, err := os.OpenFile(n.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.name(), err)
	}
	defer log.Close()
	in := append(m.Enter(), peri)
	in = append(in, args...)
	in = append(in, "--state-dir", n.stateDir(), "--run-dir", n.runDir(), "--kubeconfig-path", "", "--node-name", n.name(), "--cgroup-root", n.cgroup(),
		"--node-ip", n.address().String(), "--image-peers", filepath.Join(n.cluster.dir, "*", "run", "images.sock"), "--image-peers", filepath.Join(Defaults().RunDir, "images.sock"))
	child := exec.Command(in[0], in[1:]...) //nolint:noctx // it outlives this command
	child.Stdout, child.Stderr = log, log
	child.Env = append(os.Environ(), "NOTIFY_SOCKET="+n.notify())
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return fmt.Errorf("node %s: %w", n.name(), err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case <-ready.ready:
		return nil
	case err := <-ended:
		return fmt.Errorf("node %s: %s (log: %s)", n.name(), lastLine(n.logFile(), err), n.logFile())
	case <-timeout.C:
		return fmt.Errorf("node %s is not ready after %s (log: %s)", n.name(), startTimeout, n.logFile())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lastLine is the message with which a peri ended.
func lastLine(path string, err error) string {
	data, readErr := os.ReadFile(path)
	if readErr == nil {
		if _, message, ok := strings.Cut("\n"+string(data), "\nperi: "); ok {
			return strings.TrimSpace(message)
		}
	}
	return errors.Join(errors.New("peri ended before the node was ready"), err).Error()
}

// token makes a join token on a server node.
func (n labNode) token(ctx context.Context, peri string) (string, error) {
	m := lab.Find(n.machine(nil))
	if m == nil {
		return "", fmt.Errorf("node %s has ended (log: %s)", n.name(), n.logFile())
	}
	in := append(m.Enter(), peri, "token", "create", "--ttl", "1h", "--description", "nodes of this machine", "--kubeconfig", filepath.Join(n.stateDir(), "kubeconfig.yaml"))
	var problem bytes.Buffer
	cmd := exec.CommandContext(ctx, in[0], in[1:]...)
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make a join token: %w: %s", err, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// writeKubeconfig writes the administrator's configuration as this machine needs it.
func (c *LabCluster) writeKubeconfig(server labNode) error {
	config, err := clientcmd.LoadFromFile(filepath.Join(server.stateDir(), "kubeconfig.yaml"))
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(cluster.Server, "https://"))
		cluster.Server = "https://" + net.JoinHostPort(server.address().String(), port)
	}
	return writeKubeconfig(c.Kubeconfig(), config)
}

// readyListener hears from systemd's protocol that a process is ready.
type readyListener struct {
	conn  *net.UnixConn
	path  string
	ready chan struct{}
	done  chan struct{}
}

func listenReady(path string) (*readyListener, error) {
	_ = os.Remove(path)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("notification socket: %w", err)
	}
	l := &readyListener{conn: conn, path: path, ready: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		b := make([]byte, 4096)
		for {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			if strings.Contains(string(b[:n]), "READY=1") {
				close(l.ready)
				return
			}
		}
	}()
	return l, nil
}

func (l *readyListener) Close() {
	_ = l.conn.Close()
	<-l.done
	_ = os.Remove(l.path)
}

// DownCluster ends a cluster: processes, networks, rules and cgroups. Its files stay
// unless purge is set.
func DownCluster(ctx context.Context, c *Config, root, name string, purge bool, out io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("peri down needs root: run it with sudo")
	}
	cluster, err := openCluster(root, c.CgroupRoot, name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no cluster %q on this machine: \"peri clusters\" lists them", name)
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range cluster.nodes() {
		if m := lab.Find(n.machine(nil)); m != nil {
			errs = append(errs, m.PowerOff())
		}
	}
	segment, err := cluster.segment()
	if err == nil {
		err = segment.Remove()
	}
	errs = append(errs, err, cgroup.Empty(ctx, cluster.cgroup), cgroup.Remove(cluster.cgroup))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(out, "Cluster %s has stopped: its nodes, networks and rules are gone.\n", name)
	if !purge {
		return nil
	}
	if err := noMounts(cluster.dir); err != nil {
		return err
	}
	if err := os.RemoveAll(cluster.dir); err != nil {
		return fmt.Errorf("delete the state: %w", err)
	}
	_ = os.Remove(root) // when it was the last one
	fmt.Fprintf(out, "The state in %s is deleted.\n", cluster.dir)
	return nil
}
