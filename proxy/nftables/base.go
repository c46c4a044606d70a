package nftables

import (
	"fmt"
	"hash/fnv"

	"github.com/periplus/periplus/linux/nft"
)

// The maps of endpoints: front . index : address . port, see index; and those of
// affinity: client . front : address . port, see nodeIndex.
var (
	endpointMaps = []string{"endpoints", "endpoints-local", "endpoints-port", "endpoints-local-port"}
	affinityMaps = []string{"affinity", "affinity-port"}
	stickyMaps   = []string{"sticky", "sticky-port"}
)

// nodeIndex is where the map for node ports, or for other fronts, is.
func nodeIndex(node bool) int {
	if node {
		return 1
	}
	return 0
}

// Names of what is always there.
const (
	// Fronts to verdicts.
	mapServices         = "services"          // address . protocol . port : verdict
	mapNodePorts        = "nodeports"         // protocol . port : verdict
	mapRefused          = "refused"           // address . protocol . port : verdict
	mapRefusedNodePorts = "refused-nodeports" // protocol . port : verdict
	setHairpin          = "hairpin"           // address . the same address
	setServiceRanges    = "service-ranges"
	setPodRanges        = "pod-ranges"

	chainServices = "services"
	chainRefused  = "refused"
	chainRefuse   = "refuse"
	chainRemember = "remember"
)

// fixedChains are reached by base chains and by links.
var fixedChains = []string{chainServices, chainRefused, chainRefuse, chainRemember}

// verdictMap is where a front's verdict is.
func verdictMap(node, refuse bool) string {
	switch {
	case node && refuse:
		return mapRefusedNodePorts
	case node:
		return mapNodePorts
	case refuse:
		return mapRefused
	default:
		return mapServices
	}
}

// version changes when chains or rules in the kernel mean something else.
const version = "4"

// baseComment identifies the fixed part and its configuration.
func (b *Backend) baseComment() string {
	h := fnv.New32a()
	fmt.Fprint(h, b.cfg.ServiceCIDRs, b.cfg.PodCIDRs)
	return fmt.Sprintf("periplus proxy %s %08x", version, h.Sum32())
}

// addBase makes the table with the fixed part, in place of any that is there.
func (b *Backend) addBase(t *nft.Batch) {
	f := b.family
	addr, alen := f.AddrType(), f.AddrLen()
	t.AddTable()
	t.RemoveTable()
	t.AddTable()

	endpoint := nft.Concat(addr, nft.TypePort)
	for _, node := range []bool{false, true} {
		types, length := []uint32{addr, nft.TypeProto, nft.TypePort}, alen+8
		if node {
			types, length = types[1:], 8
		}
		for _, refuse := range []bool{false, true} {
			t.AddSet(nft.Set{Name: verdictMap(node, refuse), KeyType: nft.Concat(types...), KeyLen: length, DataType: nft.TypeVerdict})
		}
		for _, local := range []bool{false, true} {
			i := index(local, node)
			t.AddSet(nft.Set{Name: endpointMaps[i], KeyType: nft.Concat(append(types, nft.TypeMark)...), KeyLen: length + 4, DataType: endpoint, DataLen: alen + 4})
		}
		t.AddSet(nft.Set{Name: stickyMaps[nodeIndex(node)], KeyType: nft.Concat(types...), KeyLen: length, DataType: nft.TypeVerdict})
		t.AddSet(nft.Set{Name: affinityMaps[nodeIndex(node)], KeyType: nft.Concat(append([]uint32{addr}, types...)...), KeyLen: alen + length, DataType: endpoint, DataLen: alen + 4, Dynamic: true, Expires: true})
	}
	t.AddSet(nft.Set{Name: setHairpin, KeyType: nft.Concat(addr, addr), KeyLen: 2 * alen})
	t.AddSet(nft.Set{Name: setServiceRanges, KeyType: addr, KeyLen: alen, Interval: true})
	t.AddSet(nft.Set{Name: setPodRanges, KeyType: addr, KeyLen: alen, Interval: true})
	for _, p := range b.cfg.ServiceCIDRs {
		t.AddRange(setServiceRanges, p)
	}
	for _, p := range b.cfg.PodCIDRs {
		t.AddRange(setPodRanges, p)
	}

	for _, c := range fixedChains {
		t.AddChain(c, nil)
	}
	t.AddRule(chainRefuse, "", nft.NewRule().RejectTCP())
	t.AddRule(chainRefuse, "", nft.NewRule().Reject(f))
	b.addServicesChain(t)
	b.addFilters(t)
	b.addMemory(t)

	for name, num := range map[string]uint32{"nat-prerouting": nft.Prerouting, "nat-output": nft.Output} {
		t.AddChain(name, &nft.Hook{Type: "nat", Num: num, Priority: nft.PriorityDstNAT})
		t.AddRule(name, "", nft.NewRule().Do(nft.Jump(chainServices)))
	}
	const post = "nat-postrouting"
	t.AddChain(post, &nft.Hook{Type: "nat", Num: nft.Postrouting, Priority: nft.PrioritySrcNAT})
	t.AddRule(post, "a pod that reached itself", nft.NewRule().CtDNAT().
		SrcAddr(f, nft.R(0)).DstAddr(f, nft.R(alen/4)).In(setHairpin, nft.R(0)).Masquerade())
	t.AddRule(post, "marked", nft.NewRule().Unmark(masqueradeBit).CtDNAT().Masquerade())
}

// addServicesChain is where connections to Services are recognised.
func (b *Backend) addServicesChain(t *nft.Batch) {
	f, words := b.family, b.family.AddrLen()/4
	// Clients that are not pods come back through this node. The node's own
	// connections carry an address of the pod range already when the CNI gave the
	// Service range a route.
	outside := nft.NewRule()
	if len(b.cfg.PodCIDRs) > 0 && len(b.cfg.ServiceCIDRs) > 0 {
		outside.DstAddr(f, nft.R(0)).In(setServiceRanges, nft.R(0)).
			SrcAddr(f, nft.R(0)).NotIn(setPodRanges, nft.R(0)).
			Mark(masqueradeBit)
	}
	t.AddRule(chainServices, b.baseComment(), outside)
	t.AddRule(chainServices, "", nft.NewRule().
		DstAddr(f, nft.R(0)).L4Proto(nft.R(words)).DstPort(nft.R(words+1)).VMap(mapServices, nft.R(0)))
	ports := nft.NewRule().DstLocal()
	if f == nft.IPv4 {
		ports.DstAddr(f, nft.R(0)).
			Bitwise(nft.R(0), nft.R(0), []byte{255, 0, 0, 0}, make([]byte, 4)).
			Cmp(nft.Neq, nft.R(0), []byte{127, 0, 0, 0})
	}
	t.AddRule(chainServices, "", ports.L4Proto(nft.R(0)).DstPort(nft.R(1)).VMap(mapNodePorts, nft.R(0)))
}

// addMemory remembers which endpoint clients of ports with affinity got, after
// the destination was translated: the packet says it.
func (b *Backend) addMemory(t *nft.Batch) {
	f, words := b.family, b.family.AddrLen()/4
	for name, num := range map[string]uint32{"memory-prerouting": nft.Prerouting, "memory-output": nft.Output} {
		t.AddChain(name, &nft.Hook{Type: "filter", Num: num, Priority: nft.PriorityDstNAT + 10})
		t.AddRule(name, "", nft.NewRule().CtNew().CtDNAT().Do(nft.Jump(chainRemember)))
	}
	t.AddRule(chainRemember, "", nft.NewRule().Unmark(nodePortBit).
		L4Proto(nft.R(0)).OriginalDstPort(nft.R(1)).VMap(stickyMaps[1], nft.R(0)))
	t.AddRule(chainRemember, "", nft.NewRule().
		OriginalDst(f, nft.R(0)).L4Proto(nft.R(words)).OriginalDstPort(nft.R(words+1)).VMap(stickyMaps[0], nft.R(0)))
}

// addFilters refuses what has no endpoints, before the destination would be
// translated on output and after it was not elsewhere.
func (b *Backend) addFilters(t *nft.Batch) {
	f := b.family
	words := b.family.AddrLen() / 4
	t.AddRule(chainRefused, "", nft.NewRule().
		DstAddr(f, nft.R(0)).L4Proto(nft.R(words)).DstPort(nft.R(words+1)).VMap(mapRefused, nft.R(0)))
	t.AddRule(chainRefused, "", nft.NewRule().DstLocal().
		L4Proto(nft.R(0)).DstPort(nft.R(1)).VMap(mapRefusedNodePorts, nft.R(0)))
	for name, num := range map[string]uint32{"filter-input": nft.Input, "filter-forward": nft.Forward, "filter-output": nft.Output} {
		t.AddChain(name, &nft.Hook{Type: "filter", Num: num, Priority: nft.PriorityDstNAT - 10})
		t.AddRule(name, "", nft.NewRule().CtNew().Do(nft.Jump(chainRefused)))
	}
	if len(b.cfg.ServiceCIDRs) == 0 {
		return
	}
	for name, num := range map[string]uint32{"range-forward": nft.Forward, "range-output": nft.Output} {
		t.AddChain(name, &nft.Hook{Type: "filter", Num: num, Priority: nft.PriorityFilter})
		t.AddRule(name, "no such service", nft.NewRule().CtNew().
			DstAddr(f, nft.R(0)).In(setServiceRanges, nft.R(0)).DstNotLocal().Do(nft.Goto(chainRefuse)))
	}
}
