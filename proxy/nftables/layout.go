package nftables

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
)

// A layout is what one Service port needs in the kernel. It is a pure function
// of the port.
type layout struct {
	chains []chain
	fronts []front
}

// A chain holds steps, run in order. The name says all that is in it, so that
// ports share chains.
type chain struct {
	name  string
	steps []step
}

// signature identifies a chain's content: the comments of its rules.
func (c chain) signature() string {
	comments := make([]string, len(c.steps))
	for i, s := range c.steps {
		comments[i] = s.comment()
	}
	return strings.Join(comments, "\n")
}

// A front is an address and port, or a node port, that clients send to.
type front struct {
	frontKey
	target
}

type frontKey struct {
	node bool   // a node port
	key  string // as the kernel wants it
}

// A target is what happens with packets for a front.
type target struct {
	verdict nft.Verdict
	refuse  bool             // in the filter hooks, instead of the nat ones
	cluster []netip.AddrPort // endpoints that balancers choose from, sorted
	local   []netip.AddrPort
	sticky  *chain // remembers clients
}

// makeLayout lays out p.
func makeLayout(p *proxy.Port) layout {
	var l layout
	if p == nil {
		return l
	}
	inside := frontKey{key: addrKey(p.ClusterIP, p.Name.Protocol, p.Port)}
	near := balancer{n: len(p.Local), sticky: p.Affinity > 0, local: true}
	all := balancer{n: len(p.Cluster), sticky: p.Affinity > 0}

	// 1. The cluster IP.
	t := l.target(p, false)
	switch {
	case len(p.Cluster) == 0:
		t.refuse, t.verdict = true, nft.Goto(chainRefuse)
	case !p.InternalLocal:
		t.verdict, t.cluster = nft.Goto(l.use(all)), p.Cluster
	case len(p.Local) > 0:
		t.verdict, t.local = nft.Goto(l.use(near)), p.Local
	default:
		t.refuse, t.verdict = true, nft.Drop
	}
	l.fronts = append(l.fronts, front{inside, t})

	// 2. The addresses that the outside knows.
	for _, a := range p.External {
		key := frontKey{key: addrKey(a, p.Name.Protocol, p.Port)}
		l.fronts = append(l.fronts, front{key, l.external(p, false, nil)})
	}
	for _, a := range p.LoadBalancer {
		key := frontKey{key: addrKey(a, p.Name.Protocol, p.Port)}
		l.fronts = append(l.fronts, front{key, l.external(p, false, p.SourceRanges)})
	}
	if p.NodePort != 0 {
		key := frontKey{node: true, key: portKey(p.Name.Protocol, p.NodePort)}
		l.fronts = append(l.fronts, front{key, l.external(p, true, nil)})
	}
	return l
}

// external is what happens with traffic from outside. With policy Local the
// client's address stays and only this node's endpoints are used; pods and the
// node itself are inside of the cluster wherever they send to.
func (l *layout) external(p *proxy.Port, node bool, ranges []netip.Prefix) target {
	t := l.target(p, node)
	if len(p.Cluster) == 0 {
		t.refuse, t.verdict = true, nft.Goto(chainRefuse)
		return t
	}
	t.cluster = p.Cluster
	all := l.use(balancer{n: len(p.Cluster), sticky: p.Affinity > 0, node: node})
	c := chain{name: "masq-" + all, steps: []step{{kind: masquerade}, {kind: goTo, target: all}}}
	if p.ExternalLocal {
		c = chain{name: "policy-" + all, steps: []step{{kind: fromPods, target: all}, {kind: fromNode, target: all}}}
		if len(p.Local) > 0 {
			t.local = p.Local
			near := l.use(balancer{n: len(p.Local), sticky: p.Affinity > 0, local: true, node: node})
			c.name += "-" + near
			c.steps = append(c.steps, step{kind: goTo, target: near})
		} else {
			c.name += "-drop"
			c.steps = append(c.steps, step{kind: drop})
		}
	}
	l.add(c)
	if len(ranges) > 0 {
		limited := chain{}
		for _, r := range ranges {
			limited.steps = append(limited.steps, step{kind: fromRange, target: c.name, source: r})
		}
		limited.steps = append(limited.steps, step{kind: drop})
		h := fnv.New64a()
		_, _ = h.Write([]byte(limited.signature()))
		limited.name = fmt.Sprintf("from-%016x", h.Sum64())
		l.add(limited)
		c = limited
	}
	t.verdict = nft.Goto(c.name)
	return t
}

// target returns an empty target with the port's affinity.
func (l *layout) target(p *proxy.Port, node bool) (t target) {
	if p.Affinity > 0 && len(p.Cluster) > 0 {
		c := remembering(p.Affinity, node)
		l.add(c)
		t.sticky = &c
	}
	return t
}

func (l *layout) add(c chain) {
	if !slices.ContainsFunc(l.chains, func(x chain) bool { return x.name == c.name }) {
		l.chains = append(l.chains, c)
	}
}

// use returns the name of a balancer's chain.
func (l *layout) use(b balancer) string {
	c := b.chain()
	l.add(c)
	return c.name
}

// A balancer chooses one of n endpoints. Whose they are, it finds by what the
// client sent to, so that all fronts with n endpoints share it: the kernel
// walks a map for each chain that uses it, and a map's users for each element.
type balancer struct {
	n      int
	sticky bool // affinity
	local  bool // of the endpoints on this node
	node   bool // the client sent to a node port
}

// index is where the map of such endpoints for such fronts is in endpointMaps.
func index(local, node bool) int {
	i := 0
	if local {
		i++
	}
	if node {
		i += 2
	}
	return i
}

func (b balancer) chain() chain {
	c := chain{name: "one-of-" + strconv.Itoa(b.n), steps: []step{{kind: choose, balancer: b}}}
	if b.local {
		c.name += "-local"
	}
	if b.node {
		c.name += "-port"
	}
	if b.sticky {
		c.name += "-sticky"
		c.steps = slices.Insert(c.steps, 0, step{kind: stick, balancer: b})
		if b.node {
			c.steps = slices.Insert(c.steps, 0, step{kind: note})
		}
	}
	return c
}

// remembering is the chain that remembers a client's endpoint for that time.
func remembering(ttl time.Duration, node bool) chain {
	c := chain{"remember-" + strconv.Itoa(int(ttl/time.Second)), []step{{kind: remember, ttl: ttl, balancer: balancer{node: node}}}}
	if node {
		c.name += "-port"
	}
	return c
}

// addrKey is address . protocol . port, each padded to four bytes.
func addrKey(a netip.Addr, proto v1.Protocol, port uint16) string {
	return string(a.AsSlice()) + portKey(proto, port)
}

// portKey is protocol . port.
func portKey(proto v1.Protocol, port uint16) string {
	return string([]byte{protoNumber(proto), 0, 0, 0, byte(port >> 8), byte(port), 0, 0})
}

func protoNumber(p v1.Protocol) byte {
	switch p {
	case v1.ProtocolUDP:
		return 17
	case v1.ProtocolSCTP:
		return 132
	default:
		return 6
	}
}

// endpointKey is a front's key . index, the index in host order as the kernel
// computes it.
func endpointKey(buf []byte, front string, index int) []byte {
	buf = append(buf[:0], front...)
	return binary.NativeEndian.AppendUint32(buf, uint32(index))
}

// endpointData is address . port.
func endpointData(buf []byte, e netip.AddrPort) []byte {
	if a := e.Addr(); a.Is4() {
		b := a.As4()
		buf = append(buf[:0], b[:]...)
	} else {
		b := a.As16()
		buf = append(buf[:0], b[:]...)
	}
	return append(buf, byte(e.Port()>>8), byte(e.Port()), 0, 0)
}

// parseEndpoint is the reverse of endpointData.
func parseEndpoint(data []byte) (netip.AddrPort, bool) {
	if len(data) < 8 {
		return netip.AddrPort{}, false
	}
	n := len(data) - 4
	a, ok := netip.AddrFromSlice(data[:n])
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(data[n:])), ok
}
