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
// of the port and its number.
type layout struct {
	chains []chain
	lists  []list
	links  []link
}

// A chain holds steps, run in order. Chains are shared: the name says all that
// is in one, except for those of source ranges, which are named after their port.
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

// A list is a set of endpoints to choose from.
type list struct {
	id        uint32
	endpoints []netip.AddrPort // sorted
	sticky    bool
}

// A link is an element of one of the maps that lead from what a client sends
// to to what happens with it.
type link struct {
	linkKey
	value
}

type linkKey struct {
	set string
	key string // as the kernel wants it
}

// A value is a verdict, or the number of a list when list is true.
type value struct {
	verdict nft.Verdict
	list    bool
	id      uint32
}

// numberOf is the number that a port would like to have: the same after a
// restart, so that rules in the kernel stay as they are.
func numberOf(name proxy.PortName) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name.Namespace + "/" + name.Name + "/" + string(name.Protocol) + "/" + name.Port))
	return h.Sum32() & 0x7fffffff
}

// makeLayout lays out p. The lists are 2×number (all endpoints) and one more
// (those on this node).
func makeLayout(p *proxy.Port, number uint32) layout {
	var l layout
	if p == nil {
		return l
	}
	external := p.IsExternal()
	clusterIP := addrKey(p.ClusterIP, p.Name.Protocol, p.Port)
	cluster := list{number << 1, p.Cluster, p.Affinity > 0}
	local := list{number<<1 | 1, p.Local, p.Affinity > 0}
	toCluster := balancer{n: uint32(len(p.Cluster)), ttl: p.Affinity}
	toLocal := balancer{n: uint32(len(p.Local)), ttl: p.Affinity, local: true}

	// 1. The lists.
	if len(p.Cluster) > 0 && (external || !p.InternalLocal) {
		l.lists = append(l.lists, cluster)
	}
	if len(p.Local) > 0 {
		l.lists = append(l.lists, local)
	}

	// 2. The cluster IP.
	switch {
	case len(p.Cluster) == 0:
		l.link(mapRefused, clusterIP, nft.Goto(chainRefuse))
	case !p.InternalLocal:
		l.link(mapServices, clusterIP, nft.Goto(l.use(toCluster)))
		l.linkList(toCluster.lists(), clusterIP, cluster.id)
	case len(p.Local) > 0:
		l.link(mapServices, clusterIP, nft.Goto(l.use(toLocal)))
		l.linkList(toLocal.lists(), clusterIP, local.id)
	default:
		l.link(mapRefused, clusterIP, nft.Drop)
	}

	// 3. The addresses that the outside knows.
	for _, a := range p.External {
		l.external(p, mapServices, addrKey(a, p.Name.Protocol, p.Port), toCluster, toLocal, number, false)
	}
	for _, a := range p.LoadBalancer {
		l.external(p, mapServices, addrKey(a, p.Name.Protocol, p.Port), toCluster, toLocal, number, len(p.SourceRanges) > 0)
	}
	if p.NodePort != 0 {
		toCluster.port, toLocal.port = true, true
		l.external(p, mapNodePorts, portKey(p.Name.Protocol, p.NodePort), toCluster, toLocal, number, false)
	}
	return l
}

// external links an address or node port that the outside knows. With policy
// Local the client's address stays and only this node's endpoints are used; pods
// and the node itself are inside of the cluster wherever they send to.
func (l *layout) external(p *proxy.Port, set, key string, toCluster, toLocal balancer, number uint32, ranges bool) {
	if len(p.Cluster) == 0 {
		refused := mapRefused
		if set == mapNodePorts {
			refused = mapRefusedNodePorts
		}
		l.link(refused, key, nft.Goto(chainRefuse))
		return
	}
	all := l.use(toCluster)
	l.linkList(toCluster.lists(), key, number<<1)
	c := chain{name: "masq-" + all, steps: []step{{kind: masquerade}, {kind: goTo, target: all}}}
	if p.ExternalLocal {
		c = chain{name: "policy-" + all, steps: []step{{kind: fromPods, target: all}, {kind: fromNode, target: all}}}
		if len(p.Local) > 0 {
			near := l.use(toLocal)
			l.linkList(toLocal.lists(), key, number<<1|1)
			c.name += "-" + near
			c.steps = append(c.steps, step{kind: goTo, target: near})
		} else {
			c.name += "-drop"
			c.steps = append(c.steps, step{kind: drop})
		}
	}
	l.add(c)
	if ranges {
		limited := chain{name: fmt.Sprintf("from-%08x", number)}
		for _, r := range p.SourceRanges {
			limited.steps = append(limited.steps, step{kind: fromRange, target: c.name, source: r})
		}
		limited.steps = append(limited.steps, step{kind: drop})
		l.add(limited)
		c = limited
	}
	l.link(set, key, nft.Goto(c.name))
}

func (l *layout) add(c chain) {
	if !slices.ContainsFunc(l.chains, func(x chain) bool { return x.name == c.name }) {
		l.chains = append(l.chains, c)
	}
}

// use returns the chain of a balancer.
func (l *layout) use(b balancer) string {
	c := b.chain()
	l.add(c)
	return c.name
}

func (l *layout) link(set, key string, v nft.Verdict) {
	l.links = append(l.links, link{linkKey{set, key}, value{verdict: v}})
}

func (l *layout) linkList(set, key string, id uint32) {
	l.links = append(l.links, link{linkKey{set, key}, value{list: true, id: id}})
}

// A balancer chooses one of n endpoints. Which list it is, it finds by what the
// client sent to, so that all Services with n endpoints share it: the kernel
// walks a map for each chain that uses it, and a map's users for each element.
type balancer struct {
	n     uint32
	ttl   time.Duration // of affinity; 0: none
	local bool          // of the endpoints on this node
	port  bool          // the client sent to a node port
}

// lists is the map that says which list it is.
func (b balancer) lists() string {
	switch {
	case b.local && b.port:
		return mapLocalPortLists
	case b.local:
		return mapLocalLists
	case b.port:
		return mapPortLists
	default:
		return mapLists
	}
}

func (b balancer) chain() chain {
	name := "one-of-" + strconv.Itoa(int(b.n))
	if b.local {
		name += "-local"
	}
	if b.port {
		name += "-port"
	}
	if b.ttl == 0 {
		return chain{name, []step{{kind: choose, balancer: b}}}
	}
	return chain{
		name + "-for-" + strconv.Itoa(int(b.ttl/time.Second)),
		[]step{{kind: stick, balancer: b}, {kind: chooseAndStick, balancer: b}},
	}
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

// endpointKey is list . index, in host order as the kernel computes them.
func endpointKey(buf []byte, list, index uint32) []byte {
	buf = binary.NativeEndian.AppendUint32(buf[:0], list)
	return binary.NativeEndian.AppendUint32(buf, index)
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
