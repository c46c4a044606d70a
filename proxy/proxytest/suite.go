package proxytest

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/linux/netnstest"
	"github.com/periplus/periplus/proxy"
)

// Config is the cluster of the suite.
func Config() proxy.BackendConfig {
	return proxy.BackendConfig{ServiceCIDRs: []netip.Prefix{ServiceCIDR}, PodCIDRs: []netip.Prefix{PodCIDR}}
}

// Example is a port with three endpoints, one of them on this node, that can be
// reached in every way; nobody answers there.
func Example() *proxy.Port {
	p := &proxy.Port{
		Name:      proxy.PortName{Namespace: "default", Name: "web", Port: "http", Protocol: v1.ProtocolTCP},
		ClusterIP: netip.MustParseAddr("10.43.0.10"), Port: 80, NodePort: 30080, ExternalLocal: true, Affinity: time.Hour,
		External:     []netip.Addr{netip.MustParseAddr("198.51.100.7")},
		LoadBalancer: []netip.Addr{netip.MustParseAddr("198.51.100.9")},
		SourceRanges: []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")},
	}
	for _, e := range []string{"10.42.0.2:8080", "10.42.1.2:8080", "10.42.2.2:8080"} {
		p.Cluster = append(p.Cluster, netip.MustParseAddrPort(e))
	}
	p.Local, p.OnNode = p.Cluster[:1], []netip.Addr{p.Cluster[0].Addr()}
	return p
}

// Run runs the suite; open makes a backend in the current namespace that knows
// PodCIDR and ServiceCIDR.
func Run(t *testing.T, open func(t testing.TB) proxy.Backend) {
	for _, c := range []struct {
		name string
		f    func(t *testing.T, n *Node, b proxy.Backend)
	}{
		{"endpoints share connections", distribution},
		{"affinity keeps a client on its endpoint", affinity},
		{"node ports", nodePorts},
		{"external policy Local keeps the client's address", externalLocal},
		{"source ranges", sourceRanges},
		{"no endpoints: refused", refused},
		{"internal policy Local without local endpoints: dropped", internalLocal},
		{"a pod reaches itself", hairpin},
		{"one change after the other", incremental},
		{"two claim one address", contested},
		{"UDP flows leave an endpoint that has gone", udp},
		{"rules stay for a new process", takeover},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			netnstest.Run(t, func() {
				b := open(t)
				t.Cleanup(func() { check(t, b.Close()) })
				c.f(t, NewNode(t), b)
			})
		})
	}
}

// service is a port 80 at 10.43.0.<last> with these pods, on port 8080, as endpoints on this node.
func service(last byte, pods ...*Pod) *proxy.Port {
	p := &proxy.Port{
		Name:      proxy.PortName{Namespace: "default", Name: "web", Port: "http", Protocol: v1.ProtocolTCP},
		ClusterIP: netip.AddrFrom4([4]byte{10, 43, 0, last}),
		Port:      80,
	}
	for _, pod := range pods {
		p.Cluster = append(p.Cluster, netip.AddrPortFrom(pod.IP, 8080))
		p.OnNode = append(p.OnNode, pod.IP)
	}
	slices.SortFunc(p.Cluster, netip.AddrPort.Compare)
	p.Local = p.Cluster
	return p
}

// with returns a changed copy.
func with(p *proxy.Port, change func(*proxy.Port)) *proxy.Port {
	c := *p
	change(&c)
	return &c
}

func update(p *proxy.Port) []proxy.Update { return []proxy.Update{{Name: p.Name, Port: p}} }

func vip(p *proxy.Port) netip.AddrPort { return netip.AddrPortFrom(p.ClusterIP, p.Port) }

func (n *Node) servers(count int) []*Pod {
	pods := make([]*Pod, count)
	for i := range pods {
		pods[i] = n.Pod()
		pods[i].Serve(8080)
	}
	return pods
}

type dialer func(netip.AddrPort) (Answer, error)

// answers dials n times and counts who answered.
func answers(t *testing.T, dial dialer, to netip.AddrPort, n int) map[netip.Addr]int {
	t.Helper()
	out := map[netip.Addr]int{}
	for range n {
		a, err := dial(to)
		check(t, err)
		out[a.Pod]++
	}
	return out
}

func distribution(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(3)
	client := n.Pod()
	svc := service(10, pods...)
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	for name, dial := range map[string]dialer{"node": n.Dial, "pod": client.Dial} {
		got := answers(t, dial, vip(svc), 60)
		for _, p := range pods {
			if got[p.IP] < 5 {
				t.Errorf("from the %s: %s answered %d of 60", name, p.IP, got[p.IP])
			}
		}
	}
	// The client's address arrives as it is.
	if a, err := client.Dial(vip(svc)); err != nil || a.Client != client.IP {
		t.Errorf("server saw %s, want %s (%v)", a.Client, client.IP, err)
	}
}

func affinity(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(4)
	client := n.Pod()
	svc := with(service(10, pods...), func(p *proxy.Port) { p.Affinity = time.Hour })
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	first, err := client.Dial(vip(svc))
	check(t, err)
	if got := answers(t, client.Dial, vip(svc), 20); got[first.Pod] != 20 {
		t.Errorf("first %s, then %v", first.Pod, got)
	}
	// The endpoint goes: another one, and again only one.
	rest := slices.DeleteFunc(slices.Clone(pods), func(p *Pod) bool { return p.IP == first.Pod })
	svc = with(service(10, rest...), func(p *proxy.Port) { p.Affinity = time.Hour })
	check(t, b.Apply(t.Context(), update(svc)))
	got := answers(t, client.Dial, vip(svc), 20)
	if len(got) != 1 || got[first.Pod] != 0 {
		t.Errorf("after %s went: %v", first.Pod, got)
	}
}

func nodePorts(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(2)
	client, outside := n.Pod(), n.Outside()
	svc := with(service(10, pods...), func(p *proxy.Port) {
		p.NodePort = 30080
		p.External = []netip.Addr{netip.MustParseAddr("198.51.100.7")}
	})
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	inner, outer := netip.AddrPortFrom(n.Address(), 30080), netip.MustParseAddrPort("192.0.2.1:30080")
	answers(t, n.Dial, inner, 4)
	answers(t, n.Dial, outer, 4)
	answers(t, client.Dial, inner, 4)
	answers(t, client.Dial, outer, 4)
	answers(t, outside.Dial, outer, 4)
	a, err := outside.Dial(outer)
	check(t, err)
	if a.Client != n.Address() {
		t.Errorf("server saw %s, want the node %s", a.Client, n.Address())
	}
	answers(t, client.Dial, netip.MustParseAddrPort("198.51.100.7:80"), 4)
	// Gone again.
	check(t, b.Apply(t.Context(), update(service(10, pods...))))
	if _, err := outside.Dial(outer); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("node port that has gone: %v, want connection refused", err)
	}
}

func externalLocal(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(2)
	outside := n.Outside()
	svc := with(service(10, pods...), func(p *proxy.Port) {
		p.NodePort, p.ExternalLocal, p.Local = 30080, true, p.Cluster[:1]
	})
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	to := netip.MustParseAddrPort("192.0.2.1:30080")
	for range 6 {
		a, err := outside.Dial(to)
		check(t, err)
		if a.Client != outside.IP || a.Pod != pods[0].IP {
			t.Fatalf("got %v, want pod %s with client %s", a, pods[0].IP, outside.IP)
		}
	}
	if got := answers(t, n.Dial, to, 30); len(got) != 2 {
		t.Errorf("from the node: %v, want both", got)
	}
}

func sourceRanges(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(1)
	client := n.Pod()
	lb := netip.MustParseAddr("198.51.100.9")
	svc := with(service(10, pods...), func(p *proxy.Port) {
		p.LoadBalancer = []netip.Addr{lb}
		p.SourceRanges = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12"), netip.PrefixFrom(client.IP, 32)}
	})
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	answers(t, client.Dial, netip.AddrPortFrom(lb, 80), 2)
}

func refused(t *testing.T, n *Node, b proxy.Backend) {
	client, outside := n.Pod(), n.Outside()
	svc := with(service(10), func(p *proxy.Port) { p.NodePort = 30080 })
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	unused := netip.MustParseAddrPort("10.43.200.1:80")
	for name, f := range map[string]func() (Answer, error){
		"node, no endpoints":      func() (Answer, error) { return n.Dial(vip(svc)) },
		"pod, no endpoints":       func() (Answer, error) { return client.Dial(vip(svc)) },
		"node, unused cluster IP": func() (Answer, error) { return n.Dial(unused) },
		"pod, unused cluster IP":  func() (Answer, error) { return client.Dial(unused) },
		"node port":               func() (Answer, error) { return outside.Dial(netip.MustParseAddrPort("192.0.2.1:30080")) },
	} {
		if a, err := f(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: got %v, %v, want connection refused", name, a, err)
		}
	}
	// An endpoint comes.
	check(t, b.Apply(t.Context(), update(service(10, n.servers(1)...))))
	answers(t, client.Dial, vip(svc), 1)
}

func internalLocal(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(2)
	svc := with(service(10, pods...), func(p *proxy.Port) { p.InternalLocal, p.Local = true, p.Cluster[1:] })
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	if got := answers(t, n.Dial, vip(svc), 10); got[pods[1].IP] != 10 {
		t.Errorf("got %v, want the local one only", got)
	}
}

func hairpin(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(1)
	svc := service(10, pods...)
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	answers(t, pods[0].Dial, vip(svc), 3)
}

func incremental(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(5)
	check(t, b.Replace(t.Context(), nil))
	for _, members := range [][]int{{0}, {0, 1, 2}, {1, 2}, {4, 1}, {}, {3, 4, 0, 1, 2}, {2}} {
		var some []*Pod
		for _, i := range members {
			some = append(some, pods[i])
		}
		svc := service(10, some...)
		check(t, b.Apply(t.Context(), update(svc)))
		if len(some) == 0 {
			if _, err := n.Dial(vip(svc)); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("no endpoints: %v", err)
			}
			continue
		}
		got := answers(t, n.Dial, vip(svc), 20*len(some))
		for _, p := range some {
			if got[p.IP] == 0 {
				t.Errorf("members %v: %s never answered: %v", members, p.IP, got)
			}
		}
		if len(got) != len(some) {
			t.Errorf("members %v: %v answered", members, got)
		}
	}
	name := service(10).Name
	check(t, b.Apply(t.Context(), []proxy.Update{{Name: name}}))
	if _, err := n.Dial(netip.MustParseAddrPort("10.43.0.10:80")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("service that has gone: %v", err)
	}
}

func contested(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(2)
	one := with(service(10, pods[0]), func(p *proxy.Port) { p.NodePort = 30080 })
	two := with(service(11, pods[1]), func(p *proxy.Port) { p.NodePort = 30080; p.Name.Name = "other" })
	check(t, b.Replace(t.Context(), []*proxy.Port{one, two}))
	to := netip.AddrPortFrom(n.Address(), 30080)
	if got := answers(t, n.Dial, to, 5); len(got) != 1 {
		t.Errorf("got %v, want one Service's", got)
	}
	check(t, b.Apply(t.Context(), []proxy.Update{{Name: one.Name}}))
	if got := answers(t, n.Dial, to, 5); got[pods[1].IP] != 5 {
		t.Errorf("after the first went: %v", got)
	}
}

func udp(t *testing.T, n *Node, b proxy.Backend) {
	pods := []*Pod{n.Pod(), n.Pod()}
	for _, p := range pods {
		p.ServeUDP(8080)
	}
	asUDP := func(p *proxy.Port) { p.Name.Protocol = v1.ProtocolUDP }
	svc := with(service(10, pods[0]), asUDP)
	check(t, b.Replace(t.Context(), []*proxy.Port{svc}))
	c := n.Pod().DialUDP(vip(svc))
	if a, err := Ask(c); err != nil || a != pods[0].IP {
		t.Fatalf("first: %v, %v", a, err)
	}
	check(t, b.Apply(t.Context(), update(with(service(10, pods[1]), asUDP))))
	if a, err := Ask(c); err != nil || a != pods[1].IP {
		t.Errorf("after the change: %v, %v; want %s", a, err, pods[1].IP)
	}
}

func takeover(t *testing.T, n *Node, b proxy.Backend) {
	pods := n.servers(2)
	web := service(10, pods...)
	old := with(service(11, pods...), func(p *proxy.Port) { p.Name.Name = "old"; p.NodePort = 30081 })
	check(t, b.Replace(t.Context(), []*proxy.Port{web, old}))
	// The Service "old" goes and an endpoint goes while nobody looks.
	web = service(10, pods[1])
	check(t, b.Replace(t.Context(), []*proxy.Port{web}))
	if got := answers(t, n.Dial, vip(web), 10); got[pods[1].IP] != 10 {
		t.Errorf("got %v", got)
	}
	for _, to := range []netip.AddrPort{vip(old), netip.AddrPortFrom(n.Address(), 30081)} {
		if _, err := n.Dial(to); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s of a Service that has gone: %v", to, err)
		}
	}
}
