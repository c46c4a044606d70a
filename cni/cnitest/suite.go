package cnitest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netnstest"
)

// Ranges that the network under test is told.
var (
	ClusterCIDR = netip.MustParsePrefix("10.42.0.0/16")
	ServiceCIDR = netip.MustParsePrefix("10.43.0.0/16")
	NodeCIDR    = netip.MustParsePrefix("10.42.3.0/24")
)

const patience = 5 * time.Second

// Run runs the suite; open makes a network in the current namespace, with its
// state in dir. It is called again for what a restart must find.
func Run(t *testing.T, open func(t testing.TB, dir string) cni.Network) {
	for _, c := range []struct {
		name string
		f    func(t *testing.T, open func() cni.Network)
	}{
		{"not ready without a range", notReady},
		{"pods reach each other and the node", connectivity},
		{"addresses survive a restart and are freed", lifecycle},
		{"a failed Add leaves nothing", failedAdd},
		{"host ports", hostPorts},
		{"pods leave the cluster masqueraded", outside},
		{"unused addresses of the cluster are refused", unreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			netnstest.Run(t, func() {
				dir := t.TempDir()
				c.f(t, func() cni.Network { return open(t, dir) })
			})
		})
	}
}

// sandbox attaches a fresh namespace.
type sandbox struct {
	*netnstest.Namespace
	a  cni.Attachment
	r  cni.Result
	ip netip.Addr
}

func add(t testing.TB, n cni.Network, id string, ports ...cni.PortMapping) *sandbox {
	t.Helper()
	s := &sandbox{Namespace: netnstest.New(t)}
	s.a = cni.Attachment{SandboxID: id, NetNS: s.Path, IfName: "eth0", PortMappings: ports}
	var err error
	s.r, err = n.Add(t.Context(), s.a)
	check(t, err)
	s.ip = s.r.Addresses[0].Addr()
	return s
}

// serve answers connections with the client's address.
func (s *sandbox) serve(t testing.TB, port uint16) {
	t.Helper()
	var l net.Listener
	s.Do(t, func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	answer(t, l)
}

func answer(t testing.TB, l net.Listener) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			from, _ := netip.ParseAddrPort(c.RemoteAddr().String())
			_, _ = fmt.Fprint(c, from.Addr())
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
}

// dial returns the address that the server saw.
func dial(to netip.AddrPort) (netip.Addr, error) {
	c, err := net.DialTimeout("tcp4", to.String(), patience)
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	buf := make([]byte, 64)
	k, err := c.Read(buf)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(string(buf[:k]))
}

func (s *sandbox) dial(t testing.TB, to netip.AddrPort) (seen netip.Addr, err error) {
	t.Helper()
	s.Do(t, func() error { seen, err = dial(to); return nil })
	return seen, err
}

func configured(t testing.TB, open func() cni.Network) cni.Network {
	t.Helper()
	n := open()
	check(t, n.Configure(t.Context(), []netip.Prefix{NodeCIDR}))
	check(t, n.Configure(t.Context(), []netip.Prefix{NodeCIDR}))
	check(t, n.Status(t.Context()))
	return n
}

func notReady(t *testing.T, open func() cni.Network) {
	n := open()
	if err := n.Status(t.Context()); !errors.Is(err, cni.ErrNotReady) {
		t.Errorf("Status: %v", err)
	}
	if _, err := n.Add(t.Context(), cni.Attachment{SandboxID: "a", NetNS: netnstest.New(t).Path}); !errors.Is(err, cni.ErrNotReady) {
		t.Errorf("Add: %v", err)
	}
	check(t, n.Del(t.Context(), cni.Attachment{SandboxID: "a"}))
}

func connectivity(t *testing.T, open func() cni.Network) {
	n := configured(t, open)
	a, b := add(t, n, "a"), add(t, n, "b")
	if !NodeCIDR.Contains(a.ip) || a.ip == b.ip || a.r.Addresses[0].Bits() != NodeCIDR.Bits() {
		t.Fatalf("addresses %v, %v", a.r.Addresses, b.r.Addresses)
	}
	b.serve(t, 80)
	to := netip.AddrPortFrom(b.ip, 80)
	if seen, err := a.dial(t, to); err != nil || seen != a.ip {
		t.Errorf("pod to pod: saw %v, %v", seen, err)
	}
	if seen, err := dial(to); err != nil || seen != a.r.Gateways[0] {
		t.Errorf("node to pod: saw %v, %v", seen, err)
	}
	if seen, err := b.dial(t, to); err != nil || seen != b.ip {
		t.Errorf("pod to itself: saw %v, %v", seen, err)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort(a.r.Gateways[0].String(), "8080"))
	check(t, err)
	answer(t, l)
	if seen, err := a.dial(t, netip.AddrPortFrom(a.r.Gateways[0], 8080)); err != nil || seen != a.ip {
		t.Errorf("pod to node: saw %v, %v", seen, err)
	}
	check(t, n.Check(t.Context(), a.a))
}

func lifecycle(t *testing.T, open func() cni.Network) {
	n := configured(t, open)
	a, b := add(t, n, "a"), add(t, n, "b")
	n = configured(t, open) // another process
	check(t, n.Check(t.Context(), a.a))
	c := add(t, n, "c")
	if c.ip == a.ip || c.ip == b.ip {
		t.Fatalf("%s given twice", c.ip)
	}
	c.serve(t, 80)
	if _, err := a.dial(t, netip.AddrPortFrom(c.ip, 80)); err != nil {
		t.Errorf("a to c: %v", err)
	}
	check(t, n.Del(t.Context(), a.a))
	check(t, n.Del(t.Context(), a.a))
	if err := n.Check(t.Context(), a.a); err == nil {
		t.Error("Check after Del says that all is well")
	}
	check(t, n.Collect(t.Context(), map[string]bool{"c": true}))
	if err := n.Check(t.Context(), b.a); err == nil {
		t.Error("Check after Collect says that all is well")
	}
	check(t, n.Check(t.Context(), c.a))
	// The same sandbox may come again.
	check(t, n.Del(t.Context(), c.a))
	_, err := n.Add(t.Context(), c.a)
	check(t, err)
}

func failedAdd(t *testing.T, open func() cni.Network) {
	n := configured(t, open)
	if _, err := n.Add(t.Context(), cni.Attachment{SandboxID: "x", NetNS: "/nowhere", IfName: "eth0"}); err == nil {
		t.Fatal("no error for a namespace that is not there")
	}
	a := add(t, n, "a", cni.PortMapping{Protocol: "tcp", HostPort: 8080, ContainerPort: 80})
	other := netnstest.New(t)
	b := cni.Attachment{SandboxID: "b", NetNS: other.Path, IfName: "eth0",
		PortMappings: []cni.PortMapping{{Protocol: "tcp", HostPort: 8080, ContainerPort: 80}}}
	if _, err := n.Add(t.Context(), b); err == nil {
		t.Fatal("no error for a host port that is in use")
	}
	b.PortMappings = nil
	_, err := n.Add(t.Context(), b)
	check(t, err)
	check(t, n.Check(t.Context(), a.a))
}

func hostPorts(t *testing.T, open func() cni.Network) {
	n := configured(t, open)
	a := add(t, n, "a", cni.PortMapping{Protocol: "tcp", HostPort: 8080, ContainerPort: 80})
	b := add(t, n, "b")
	a.serve(t, 80)
	to := netip.AddrPortFrom(a.r.Gateways[0], 8080)
	for name, f := range map[string]func() (netip.Addr, error){
		"node":   func() (netip.Addr, error) { return dial(to) },
		"pod":    func() (netip.Addr, error) { return b.dial(t, to) },
		"itself": func() (netip.Addr, error) { return a.dial(t, to) },
	} {
		if _, err := f(); err != nil {
			t.Errorf("from %s: %v", name, err)
		}
	}
	n = configured(t, open)
	check(t, n.Del(t.Context(), a.a))
	if _, err := dial(to); err == nil {
		t.Error("host port still answers after Del")
	}
}

func outside(t *testing.T, open func() cni.Network) {
	// A machine at 192.0.2.2 that knows nothing of the pods' range.
	world := netnstest.New(t)
	c, err := link.Open()
	check(t, err)
	defer c.Close()
	o, err := link.OpenAt(world.Path)
	check(t, err)
	defer o.Close()
	check(t, c.AddPair(link.Pair{Name: "uplink", Peer: "eth0", MTU: 1400, Other: o}))
	up, err := c.Get("uplink")
	check(t, err)
	check(t, c.AddAddress(up.Index, netip.MustParsePrefix("192.0.2.1/24")))
	check(t, c.SetRoute(link.Route{Via: netip.MustParseAddr("192.0.2.2"), Index: up.Index}))
	eth, err := o.Get("eth0")
	check(t, err)
	check(t, o.AddAddress(eth.Index, netip.MustParsePrefix("192.0.2.2/24")))
	check(t, o.Up(eth.Index))

	n := configured(t, open)
	a := add(t, n, "a")
	(&sandbox{Namespace: world}).serve(t, 80)
	if seen, err := a.dial(t, netip.MustParseAddrPort("192.0.2.2:80")); err != nil || seen != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("saw %v, %v; want the node's address", seen, err)
	}
	pod, err := link.OpenAt(a.Path)
	check(t, err)
	defer pod.Close()
	if i, err := pod.Get("eth0"); err != nil || i.MTU != 1400 {
		t.Errorf("MTU %d, %v; want the uplink's 1400", i.MTU, err)
	}
}

func unreachable(t *testing.T, open func() cni.Network) {
	n := configured(t, open)
	a := add(t, n, "a")
	for _, to := range []string{"10.43.9.9:80", "10.42.200.1:80"} {
		to := netip.MustParseAddrPort(to)
		start := time.Now()
		if _, err := dial(to); err == nil || errors.Is(err, errTimeout(err)) {
			t.Errorf("node to %s: %v after %v", to, err, time.Since(start))
		}
		if _, err := a.dial(t, to); err == nil || errors.Is(err, errTimeout(err)) {
			t.Errorf("pod to %s: %v after %v", to, err, time.Since(start))
		}
	}
}

// errTimeout returns err when it is a timeout, else an error that is not.
func errTimeout(err error) error {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return err
	}
	return errors.New("no timeout")
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
