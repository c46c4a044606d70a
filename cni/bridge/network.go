package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/nft"
)

// routeMetric of the routes for whole ranges: the node's own range wins.
const routeMetric = 4096

// A Network is the bridge in the network namespace of the thread that made it.
type Network struct {
	cfg  Config
	link *link.Conn
	nft  *nft.Conn

	mu     sync.RWMutex // guards what follows; held for reading by Add
	pools  []*cni.Pool  // of this and earlier ranges
	active []*cni.Pool  // of the ranges that are configured; none: not ready
	bridge link.Info

	ports portTable
}

var _ cni.Network = (*Network)(nil)

// New opens what an earlier process left; the network is ready after Configure.
func New(cfg Config) (*Network, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Network{cfg: cfg}
	var err error
	if n.pools, err = cni.OpenPools(cfg.poolDir()); err != nil {
		return nil, err
	}
	if n.link, err = link.Open(); err != nil {
		return nil, err
	}
	if n.nft, err = nft.Open(); err != nil {
		_ = n.link.Close()
		return nil, err
	}
	return n, nil
}

// Name is the network's name.
func (n *Network) Name() string { return "periplus" }

// Close gives up the connections to the kernel; pods stay attached.
func (n *Network) Close() error { return errors.Join(n.link.Close(), n.nft.Close()) }

// Status returns nil when the node has a pod range.
func (n *Network) Status(context.Context) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if len(n.active) == 0 {
		return cni.ErrNotReady
	}
	return nil
}

// Configure makes the bridge, its rules and routes. It changes nothing that is
// right already, so that running pods notice nothing of a restart.
func (n *Network) Configure(_ context.Context, podCIDRs []netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var want []netip.Prefix
	for _, p := range podCIDRs {
		if !p.IsValid() {
			return errors.New("configure network: a pod range is not valid")
		}
		want = append(want, p.Masked())
	}
	if len(want) == 0 {
		return errors.New("configure network: no pod range given")
	}
	if slices.EqualFunc(n.active, want, func(p *cni.Pool, w netip.Prefix) bool { return p.Prefix() == w }) {
		return nil
	}
	var active []*cni.Pool
	for _, w := range want {
		pool, err := n.poolLocked(w)
		if err != nil {
			return err
		}
		active = append(active, pool)
	}
	if err := n.setUpLocked(active); err != nil {
		return err
	}
	n.active = active
	return nil
}

func (n *Network) poolLocked(prefix netip.Prefix) (*cni.Pool, error) {
	for _, p := range n.pools {
		if p.Prefix() == prefix {
			return p, nil
		}
	}
	p, err := cni.OpenPool(n.cfg.poolDir(), prefix)
	if err == nil {
		n.pools = append(n.pools, p)
	}
	return p, err
}

// setUpLocked makes the node's side: bridge, sysctls, addresses, rules, routes.
func (n *Network) setUpLocked(active []*cni.Pool) (err error) {
	mtu := n.cfg.MTU
	if mtu == 0 {
		mtu = n.link.UplinkMTU()
	}
	if n.bridge, err = n.link.EnsureBridge(n.cfg.Bridge, hardwareAddr(active[0].Gateway()), mtu); err != nil {
		return err
	}
	n.bridge.MTU = mtu
	if err := n.sysctls(active); err != nil {
		return err
	}
	// Addresses of ranges that the node no longer has go.
	have, err := n.link.Addresses(n.bridge.Index)
	if err != nil {
		return err
	}
	var want []netip.Prefix
	for _, p := range active {
		want = append(want, netip.PrefixFrom(p.Gateway(), p.Prefix().Bits()))
	}
	for _, a := range have {
		if !slices.Contains(want, a) {
			if err := n.link.RemoveAddress(n.bridge.Index, a); err != nil {
				return err
			}
		}
	}
	for _, a := range want {
		if err := n.link.AddAddress(n.bridge.Index, a); err != nil {
			return err
		}
	}
	for _, p := range active {
		if err := n.addRules(p); err != nil {
			return err
		}
	}
	for _, r := range n.routes(active) {
		if err := n.link.SetRoute(r); err != nil {
			return err
		}
	}
	return nil
}

// sysctls turns forwarding on. Redirects would tell pods to go around the node,
// and use up the allowance for the errors that refuse connections.
func (n *Network) sysctls(active []*cni.Pool) error {
	type sysctl struct {
		name, value string
		optional    bool
	}
	list := []sysctl{
		{"ipv4/ip_forward", "1", false},
		{"ipv4/conf/all/send_redirects", "0", true},
		{"ipv4/conf/" + n.cfg.Bridge + "/send_redirects", "0", true},
		// Without it replies between pods of one node are not translated back.
		{"bridge/bridge-nf-call-iptables", "1", true},
	}
	if slices.ContainsFunc(active, func(p *cni.Pool) bool { return p.Prefix().Addr().Is6() }) {
		list = append(list, sysctl{"ipv6/conf/all/forwarding", "1", false}, sysctl{"bridge/bridge-nf-call-ip6tables", "1", true})
	}
	for _, s := range list {
		err := n.link.SetSysctl(s.name, s.value)
		switch {
		case err == nil:
		case s.optional:
			n.cfg.Log.Warn("cannot set a sysctl; connections between pods of this node through Services may fail",
				"sysctl", s.name, base.KeyError, err)
		default:
			return fmt.Errorf("set sysctl %s=%s: %w", s.name, s.value, err)
		}
	}
	return nil
}

// routes are those for whole ranges.
func (n *Network) routes(active []*cni.Pool) []link.Route {
	var out []link.Route
	for _, p := range active {
		ipv6 := p.Prefix().Addr().Is6()
		for _, c := range n.cfg.ClusterCIDRs {
			if c.Addr().Is6() == ipv6 {
				out = append(out, link.Route{Dst: c, Unreachable: true, Metric: routeMetric})
			}
		}
		for _, c := range n.cfg.ServiceCIDRs {
			if c.Addr().Is6() == ipv6 {
				out = append(out, link.Route{Dst: c, Index: n.bridge.Index, Src: p.Gateway(), Metric: routeMetric})
			}
		}
	}
	return out
}

// Cleanup removes the bridge with its ports, the tables, the routes and the
// record of addresses.
func (n *Network) Cleanup() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for _, r := range n.routes(n.pools) {
		if r.Unreachable {
			errs = append(errs, n.link.RemoveRoute(r))
		}
	}
	if info, err := n.link.Get(n.cfg.Bridge); err == nil {
		names, err := n.link.Ports(info.Index)
		errs = append(errs, err)
		for _, name := range names {
			if strings.HasPrefix(name, hostIfPrefix) {
				errs = append(errs, n.link.Remove(name))
			}
		}
	}
	errs = append(errs, n.link.Remove(n.cfg.Bridge))
	for _, f := range []nft.Family{nft.IPv4, nft.IPv6} {
		t := nft.NewBatch(f, n.cfg.Table)
		t.AddTable()
		t.RemoveTable()
		errs = append(errs, n.nft.Commit(t))
	}
	errs = append(errs, os.RemoveAll(n.cfg.poolDir()))
	n.pools, n.active = nil, nil
	n.ports.reset()
	return errors.Join(errs...)
}

// hardwareAddr derives a hardware address from an IP address: it needs no
// record, and a neighbour that knows the pair is right for as long as it lasts.
func hardwareAddr(a netip.Addr) net.HardwareAddr {
	b := a.AsSlice()
	return append(net.HardwareAddr{0x0a, 0x58}, b[len(b)-4:]...)
}
