package proxytest

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netnstest"
)

// Ranges of the cluster on the test node.
var (
	PodCIDR     = netip.MustParsePrefix("10.42.0.0/16")
	ServiceCIDR = netip.MustParsePrefix("10.43.0.0/16")
	nodeRange   = netip.MustParsePrefix("10.42.0.1/24")
)

// patience bounds one connection: a test that needs it has failed.
const patience = 5 * time.Second

// dropped is how long a connection may take whose first packet is expected to be
// dropped: shorter than the kernel waits before it sends the packet again.
const dropped = 800 * time.Millisecond

// A Node is a namespace with a bridge and pods behind it.
type Node struct {
	t      testing.TB
	conn   *link.Conn
	bridge link.Info
	pods   int
}

// NewNode makes the current namespace a node.
func NewNode(t testing.TB) *Node {
	t.Helper()
	c, err := link.Open()
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	n := &Node{t: t, conn: c}
	n.bridge, err = c.EnsureBridge("peri0", net.HardwareAddr{2, 0, 0, 0, 0, 1}, 1500)
	check(t, err)
	check(t, c.AddAddress(n.bridge.Index, nodeRange))
	check(t, c.SetRoute(link.Route{Dst: ServiceCIDR, Index: n.bridge.Index}))
	check(t, c.SetSysctl("ipv4/ip_forward", "1"))
	_ = c.SetSysctl("bridge/bridge-nf-call-iptables", "1")
	return n
}

// Address is the node's own.
func (n *Node) Address() netip.Addr { return nodeRange.Addr() }

// A Pod is a namespace on the node's bridge.
type Pod struct {
	t  testing.TB
	ns *netnstest.Namespace
	IP netip.Addr
}

// Pod adds a pod to the bridge.
func (n *Node) Pod() *Pod {
	n.t.Helper()
	n.pods++
	ip := netip.AddrFrom4([4]byte{10, 42, 0, byte(n.pods + 1)})
	p := n.attach(fmt.Sprintf("veth%d", n.pods), n.bridge.Index, netip.PrefixFrom(ip, 24), n.Address())
	return p
}

// Outside adds a machine next to the node, in a network of its own: 192.0.2.0/24,
// the node being .1 and the machine .2.
func (n *Node) Outside() *Pod {
	n.t.Helper()
	p := n.attach("uplink", 0, netip.MustParsePrefix("192.0.2.2/24"), netip.Addr{})
	i, err := n.conn.Get("uplink")
	check(n.t, err)
	check(n.t, n.conn.AddAddress(i.Index, netip.MustParsePrefix("192.0.2.1/24")))
	return p
}

func (n *Node) attach(name string, bridge int, addr netip.Prefix, via netip.Addr) *Pod {
	n.t.Helper()
	ns := netnstest.New(n.t)
	other, err := link.OpenAt(ns.Path)
	check(n.t, err)
	defer other.Close()
	check(n.t, n.conn.AddPair(link.Pair{Name: name, Peer: "eth0", MTU: 1500, Bridge: bridge, Other: other}))
	check(n.t, other.LoopbackUp())
	eth, err := other.Get("eth0")
	check(n.t, err)
	check(n.t, other.AddAddress(eth.Index, addr))
	check(n.t, other.Up(eth.Index))
	if via.IsValid() {
		check(n.t, other.SetRoute(link.Route{Via: via, Index: eth.Index}))
	}
	return &Pod{t: n.t, ns: ns, IP: addr.Addr()}
}

// Serve answers each TCP connection to the port with "<pod's address> <client's address>".
func (p *Pod) Serve(port uint16) {
	p.t.Helper()
	var l net.Listener
	p.ns.Do(p.t, func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf(":%d", port))
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			client, _ := netip.ParseAddrPort(c.RemoteAddr().String())
			_, _ = fmt.Fprintf(c, "%s %s", p.IP, client.Addr())
			_ = c.Close()
		}
	}()
	p.t.Cleanup(func() { _ = l.Close(); <-done })
}

// ServeUDP answers each datagram with the pod's address.
func (p *Pod) ServeUDP(port uint16) {
	p.t.Helper()
	var c net.PacketConn
	p.ns.Do(p.t, func() (err error) {
		c, err = net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64)
		for {
			_, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo([]byte(p.IP.String()), from)
		}
	}()
	p.t.Cleanup(func() { _ = c.Close(); <-done })
}

// An Answer says which pod answered, and who it saw as its client.
type Answer struct{ Pod, Client netip.Addr }

// Dial connects from the node.
func (n *Node) Dial(to netip.AddrPort) (Answer, error) { return dial(to) }

// Dial connects from the pod.
func (p *Pod) Dial(to netip.AddrPort) (a Answer, err error) {
	p.t.Helper()
	p.ns.Do(p.t, func() error { a, err = dial(to); return nil })
	return a, err
}

// TryDial connects from the pod, but gives up soon: for what is expected to be dropped.
func (p *Pod) TryDial(to netip.AddrPort) (a Answer, err error) {
	p.t.Helper()
	p.ns.Do(p.t, func() error { a, err = dialFor(to, dropped); return nil })
	return a, err
}

// DialUDP opens a UDP socket in the pod.
func (p *Pod) DialUDP(to netip.AddrPort) (c net.Conn) {
	p.t.Helper()
	p.ns.Do(p.t, func() (err error) { c, err = net.Dial("udp4", to.String()); return err })
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Ask sends a datagram and returns who answered.
func Ask(c net.Conn) (netip.Addr, error) {
	if _, err := c.Write([]byte("who?")); err != nil {
		return netip.Addr{}, err
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 64)
	k, err := c.Read(buf)
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(string(buf[:k]))
}

func dial(to netip.AddrPort) (Answer, error) { return dialFor(to, patience) }

func dialFor(to netip.AddrPort, patience time.Duration) (Answer, error) {
	c, err := net.DialTimeout("tcp4", to.String(), patience)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c)
	if err != nil {
		return Answer{}, err
	}
	var pod, client string
	if _, err := fmt.Sscan(string(b), &pod, &client); err != nil {
		return Answer{}, fmt.Errorf("answer %q: %w", b, err)
	}
	return Answer{netip.MustParseAddr(pod), netip.MustParseAddr(client)}, nil
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
