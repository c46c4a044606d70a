package bridge

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/linux/nft"
)

// Sets, maps and chains of the table.
const (
	setPods     = "pods"      // the node's pod range
	setInside   = "inside"    // what pods reach with their own address
	setServices = "services"  // ranges of cluster IPs
	setHairpin  = "hairpin"   // pods with host ports: address . the same address
	mapAnyPort  = "hostports" // protocol . port : address . port
	mapHostPort = "hostports-address"

	chainHostPorts = "hostports"
)

// rulesVersion changes when the rules below do.
const rulesVersion = "2"

func familyOf(p netip.Prefix) nft.Family {
	if p.Addr().Is6() {
		return nft.IPv6
	}
	return nft.IPv4
}

// rulesComment identifies the rules and what they were made for.
func (n *Network) rulesComment(p *cni.Pool) string {
	h := fnv.New32a()
	fmt.Fprint(h, p.Prefix(), n.cfg.ClusterCIDRs, n.cfg.ServiceCIDRs, n.cfg.Bridge)
	return fmt.Sprintf("periplus cni %s %08x", rulesVersion, h.Sum32())
}

// addRules makes the table of the pool's family, unless it is right already. Host
// ports that are in it stay: their pods may still run.
func (n *Network) addRules(p *cni.Pool) error {
	f := familyOf(p.Prefix())
	if err := n.ports.load(n.nft, f, n.cfg.Table); err != nil {
		return err
	}
	comment := n.rulesComment(p)
	if has, err := n.nft.HasTable(f, n.cfg.Table); err != nil {
		return err
	} else if has {
		rules, err := n.nft.Rules(f, n.cfg.Table)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rules, func(r nft.RuleInfo) bool { return r.Comment == comment }) {
			return nil
		}
	}
	t := nft.NewBatch(f, n.cfg.Table)
	t.AddTable()
	t.RemoveTable()
	t.AddTable()
	addr, alen := f.AddrType(), f.AddrLen()
	t.AddSet(nft.Set{Name: setPods, KeyType: addr, KeyLen: alen, Interval: true})
	t.AddSet(nft.Set{Name: setInside, KeyType: addr, KeyLen: alen, Interval: true})
	t.AddSet(nft.Set{Name: setServices, KeyType: addr, KeyLen: alen, Interval: true})
	t.AddSet(nft.Set{Name: setHairpin, KeyType: nft.Concat(addr, addr), KeyLen: 2 * alen})
	endpoint := nft.Concat(addr, nft.TypePort)
	t.AddSet(nft.Set{Name: mapAnyPort, KeyType: nft.Concat(nft.TypeProto, nft.TypePort), KeyLen: 8, DataType: endpoint, DataLen: alen + 4})
	t.AddSet(nft.Set{Name: mapHostPort, KeyType: nft.Concat(addr, nft.TypeProto, nft.TypePort), KeyLen: alen + 8, DataType: endpoint, DataLen: alen + 4})

	multicast := netip.MustParsePrefix("224.0.0.0/4")
	if f == nft.IPv6 {
		multicast = netip.MustParsePrefix("ff00::/8")
	}
	inside := append(slices.Concat(n.cfg.ClusterCIDRs, n.cfg.ServiceCIDRs), p.Prefix(), multicast)
	for set, list := range map[string][]netip.Prefix{setPods: {p.Prefix()}, setInside: inside, setServices: n.cfg.ServiceCIDRs} {
		for _, r := range disjoint(list, f == nft.IPv6) {
			t.AddRange(set, r)
		}
	}
	n.addChains(t, f, comment)
	n.ports.addTo(t, f)
	if err := n.nft.Commit(t); err != nil {
		return fmt.Errorf("make table %s: %w", n.cfg.Table, err)
	}
	return nil
}

func (n *Network) addChains(t *nft.Batch, f nft.Family, comment string) {
	words := nft.Reg(f.AddrLen() / 4)
	r0 := nft.R(0)
	// 1. Masquerading.
	const post = "postrouting"
	t.AddChain(post, &nft.Hook{Type: "nat", Num: nft.Postrouting, Priority: nft.PrioritySrcNAT})
	t.AddRule(post, comment, nft.NewRule().SrcAddr(f, r0).In(setPods, r0).
		DstAddr(f, r0).NotIn(setInside, r0).OIfName(n.cfg.Bridge, true).Masquerade())
	t.AddRule(post, "a pod that reached itself by its host port", nft.NewRule().CtDNAT().
		SrcAddr(f, r0).DstAddr(f, r0+words).In(setHairpin, r0).Masquerade())
	if f == nft.IPv4 {
		t.AddRule(post, "the node itself, by 127.0.0.1", loopback(nft.NewRule().SrcAddr(f, r0), nft.Eq).OIfName(n.cfg.Bridge, false).Masquerade())
	}
	// 2. Host ports.
	data := nft.R(8)
	t.AddChain(chainHostPorts, nil)
	t.AddRule(chainHostPorts, "", nft.NewRule().DstLocal().L4Proto(r0).DstPort(r0+1).Map(mapAnyPort, r0, data).DNAT(f, data, data+words))
	t.AddRule(chainHostPorts, "", nft.NewRule().
		DstAddr(f, r0).L4Proto(r0+words).DstPort(r0+words+1).Map(mapHostPort, r0, data).DNAT(f, data, data+words))
	for name, num := range map[string]uint32{"prerouting": nft.Prerouting, "output": nft.Output} {
		t.AddChain(name, &nft.Hook{Type: "nat", Num: num, Priority: nft.PriorityDstNAT})
		t.AddRule(name, "", nft.NewRule().Do(nft.Jump(chainHostPorts)))
	}
	// What the node's loopback interface has is not for pods: only answers come from them.
	if f == nft.IPv4 {
		t.AddChain("input", &nft.Hook{Type: "filter", Num: nft.Input, Priority: nft.PriorityFilter})
		t.AddRule("input", "", loopback(nft.NewRule().CtNew().IIfName(n.cfg.Bridge).DstAddr(f, r0), nft.Eq).Do(nft.Drop))
	}
	// 3. Cluster IPs that no Service rule has translated.
	for name, num := range map[string]uint32{"forward": nft.Forward, "local": nft.Output} {
		t.AddChain(name, &nft.Hook{Type: "filter", Num: num, Priority: nft.PriorityFilter + 10})
		for _, refuse := range []*nft.Rule{
			nft.NewRule().OIfName(n.cfg.Bridge, false).DstAddr(f, r0).In(setServices, r0).RejectTCP(),
			nft.NewRule().OIfName(n.cfg.Bridge, false).DstAddr(f, r0).In(setServices, r0).Reject(f),
		} {
			t.AddRule(name, "", refuse)
		}
	}
}

// loopback compares the address in the first register with 127.0.0.0/8.
func loopback(r *nft.Rule, op nft.Op) *nft.Rule {
	return r.Bitwise(nft.R(0), nft.R(0), []byte{255, 0, 0, 0}, make([]byte, 4)).Cmp(op, nft.R(0), []byte{127, 0, 0, 0})
}

// disjoint returns the ranges of a family, without those inside of others.
func disjoint(list []netip.Prefix, ipv6 bool) []netip.Prefix {
	var out []netip.Prefix
	for i, p := range list {
		if p = p.Masked(); p.Addr().Is6() != ipv6 {
			continue
		}
		covered := false
		for j, o := range list {
			o = o.Masked()
			if i != j && o.Overlaps(p) && (o.Bits() < p.Bits() || o == p && j < i) {
				covered = true
			}
		}
		if !covered {
			out = append(out, p)
		}
	}
	return out
}

// endpointData is address . port as the maps hold it.
func endpointData(e netip.AddrPort) []byte {
	b := binary.BigEndian.AppendUint16(e.Addr().AsSlice(), e.Port())
	return append(b, 0, 0)
}
