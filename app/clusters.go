package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/lab"
)

const (
	// DefaultClustersDir holds the clusters of several nodes on one machine.
	DefaultClustersDir = "/var/lib/periplus-clusters"
	clusterFile        = "cluster.json"
	maxNodes           = 100
)

// labNetwork is where the networks of clusters on this machine are taken from, a /24 each.
var labNetwork = netip.MustParsePrefix("10.44.0.0/16")

// A LabCluster is a cluster of several nodes on this machine, each in namespaces of
// its own.
//
//	<dir>/cluster.json      what it is
//	<dir>/kubeconfig.yaml   for its administrator, from this machine
//	<dir>/<node>/           a node's files: state, run, peri.log
type LabCluster struct {
	Name    string       `json:"name"`
	Nodes   int          `json:"nodes"`
	Network netip.Prefix `json:"network"`

	dir string
	// cgroup is below which the nodes have theirs.
	cgroup string
}

// node is one machine of a cluster.
type labNode struct {
	cluster *LabCluster
	index   int
}

func (c *LabCluster) nodes() []labNode {
	var out []labNode
	for i := range c.Nodes {
		out = append(out, labNode{c, i})
	}
	return out
}

func (n labNode) name() string        { return fmt.Sprintf("%s-%d", n.cluster.Name, n.index+1) }
func (n labNode) dir() string         { return filepath.Join(n.cluster.dir, n.name()) }
func (n labNode) stateDir() string    { return filepath.Join(n.dir(), "state") }
func (n labNode) runDir() string      { return filepath.Join(n.dir(), "run") }
func (n labNode) logFile() string     { return filepath.Join(n.dir(), "peri.log") }
func (n labNode) notify() string      { return filepath.Join(n.dir(), "notify.sock") }
func (n labNode) cgroup() string      { return filepath.Join(n.cluster.cgroup, n.name()) }
func (n labNode) address() netip.Addr { return hostOf(n.cluster.Network, 10+n.index) }

// hostOf is an address of a network, counted from its first.
func hostOf(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// Kubeconfig is for the administrator, from this machine.
func (c *LabCluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig.yaml") }

// Context is the name of its context when it is added to somebody's configuration.
func (c *LabCluster) Context() string { return "peri-" + c.Name }

// bridge is the name of its network on this machine.
func (c *LabCluster) bridge() string {
	if name := "peri-" + c.Name; len(name) <= 15 {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Name))
	return fmt.Sprintf("peri-%08x", h.Sum32())
}

func (c *LabCluster) segment() (*lab.Segment, error) {
	return lab.NewSegment(lab.SegmentConfig{Name: c.bridge(), Address: netip.PrefixFrom(hostOf(c.Network, 1), c.Network.Bits())})
}

func (n labNode) machine(s *lab.Segment) lab.MachineConfig {
	var hosts strings.Builder
	for _, o := range n.cluster.nodes() {
		if o.index != n.index {
			fmt.Fprintf(&hosts, "%s %s\n", o.address(), o.name())
		}
	}
	resolvers, _ := os.ReadFile("/etc/resolv.conf") // a machine without one has no names to resolve
	return lab.MachineConfig{
		Name: n.name(), Dir: n.dir(), Address: netip.PrefixFrom(n.address(), n.cluster.Network.Bits()), Gateway: hostOf(n.cluster.Network, 1),
		Segment: s, Hosts: hosts.String(), Resolvers: string(resolvers), Stay: true,
	}
}

// running says how many of the nodes' machines run.
func (c *LabCluster) running() int {
	count := 0
	for _, n := range c.nodes() {
		if lab.Find(n.machine(nil)) != nil {
			count++
		}
	}
	return count
}

// openCluster reads a cluster; one that does not exist is os.ErrNotExist.
func openCluster(root, cgroupRoot, name string) (*LabCluster, error) {
	dir := filepath.Join(root, name)
	data, err := os.ReadFile(filepath.Join(dir, clusterFile))
	if err != nil {
		return nil, err
	}
	c := &LabCluster{dir: dir, cgroup: filepath.Join(cgroupRoot, "periplus-"+name)}
	if err := json.Unmarshal(data, c); err != nil || c.Name != name {
		return nil, fmt.Errorf("%s is damaged: %w", filepath.Join(dir, clusterFile), errors.Join(err))
	}
	return c, nil
}

func (c *LabCluster) save() error {
	if err := os.MkdirAll(c.dir, 0o711); err != nil { //nolint:gosec // containers' users pass through
		return fmt.Errorf("cluster %s: %w", c.Name, err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return pki.WriteFile(filepath.Join(c.dir, clusterFile), data, 0o644)
}

// allClusters lists the clusters of this machine by name.
func allClusters(root, cgroupRoot string) ([]*LabCluster, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clusters: %w", err)
	}
	var out []*LabCluster
	for _, e := range entries {
		c, err := openCluster(root, cgroupRoot, e.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// freeNetwork finds a network that no other cluster has.
func freeNetwork(others []*LabCluster) (netip.Prefix, error) {
	p := netip.PrefixFrom(labNetwork.Addr(), 24)
	for labNetwork.Contains(p.Addr()) {
		if !slices.ContainsFunc(others, func(c *LabCluster) bool { return c.Network == p }) {
			return p, nil
		}
		p = netip.PrefixFrom(hostOf(p, 256), 24)
	}
	return netip.Prefix{}, fmt.Errorf("no network is left in %s: remove a cluster (peri clusters, peri down --name NAME --purge)", labNetwork)
}

// checkCluster names what is wrong with a name and a number of nodes.
func checkCluster(name string, nodes int) error {
	if msgs := validation.IsDNS1123Label(name); len(msgs) > 0 {
		return fmt.Errorf("name: %q is not allowed: %s", name, msgs[0])
	}
	if nodes < 1 || nodes > maxNodes {
		return fmt.Errorf("nodes: %d is not allowed: must be 1 to %d", nodes, maxNodes)
	}
	return nil
}

// ListClusters writes a table of the clusters of this machine.
func ListClusters(root, cgroupRoot string, out io.Writer) error {
	list, err := allClusters(root, cgroupRoot)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%-16s %-6s %-9s %-18s %s\n", "NAME", "NODES", "RUNNING", "NETWORK", "KUBECONFIG")
	for _, c := range list {
		fmt.Fprintf(out, "%-16s %-6d %-9d %-18s %s\n", c.Name, c.Nodes, c.running(), c.Network, c.Kubeconfig())
	}
	return nil
}
