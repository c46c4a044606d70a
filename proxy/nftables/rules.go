package nftables

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/periplus/periplus/linux/nft"
)

// kind is what a step of a chain does.
type kind uint8

const (
	choose     kind = iota // a random endpoint
	stick                  // the endpoint that this client had last time, if any
	note                   // mark as sent to a node port, for remember
	remember               // the endpoint that was chosen
	masquerade             // mark for masquerading
	goTo                   // go to target
	fromPods               // pods go to target
	fromNode               // the node itself goes to target, masqueraded
	fromRange              // clients in source go to target
	drop
)

// A step is one rule. It is comparable; its comment says all that is in it.
type step struct {
	kind     kind
	balancer balancer
	ttl      time.Duration
	target   string
	source   netip.Prefix
}

func (s step) comment() string {
	switch s.kind {
	case choose:
		return fmt.Sprintf("1 of %d", s.balancer.n)
	case stick:
		return "as last time"
	case note:
		return "node port"
	case remember:
		return fmt.Sprintf("for %d s", s.ttl/time.Second)
	case masquerade:
		return "masquerade"
	case goTo:
		return "to " + s.target
	case fromPods:
		return "pods to " + s.target
	case fromNode:
		return "node to " + s.target
	case fromRange:
		return s.source.String() + " to " + s.target
	default:
		return "drop"
	}
}

// Bits of the packet mark: masqueradeBit is upstream's; nodePortBit is set by a
// balancer with affinity and cleared as soon as the endpoint is remembered.
const (
	masqueradeBit = 0x4000
	nodePortBit   = 0x2000
)

// Registers of a balancer. The key of affinity is client . front, that of
// endpoints front . index, so that both share the front:
//
//	IPv4   0 client    1 addr    2 proto   3 port   4 index
//	IPv6   0-3 client  4-7 addr  8 proto   9 port  10 index
//	then   11 endpoint's address (IPv6: 11-14), its port
var (
	regClient   = nft.R(0)
	regEndpoint = nft.R(11)
)

// front loads what the client sent to and returns the register of the index.
func (s step) front(r *nft.Rule, f nft.Family) (at, next nft.Reg) {
	words := nft.Reg(f.AddrLen() / 4)
	at = regClient + words
	if s.balancer.node {
		r.L4Proto(at).DstPort(at + 1)
		return at, at + 2
	}
	r.DstAddr(f, at).L4Proto(at + words).DstPort(at + words + 1)
	return at, at + words + 2
}

func (s step) rule(f nft.Family) *nft.Rule {
	r := nft.NewRule()
	b := s.balancer
	port := regEndpoint + nft.Reg(f.AddrLen()/4)
	switch s.kind {
	case choose:
		at, next := s.front(r, f)
		return r.Random(next, uint32(b.n)).
			Map(endpointMaps[index(b.local, b.node)], at, regEndpoint).
			DNAT(f, regEndpoint, port)
	case stick:
		s.front(r.SrcAddr(f, regClient), f)
		return r.Map(affinityMaps[nodeIndex(b.node)], regClient, regEndpoint).
			DNAT(f, regEndpoint, port)
	case note:
		return r.Mark(nodePortBit)
	case remember:
		at := regClient + nft.Reg(f.AddrLen()/4)
		r.SrcAddr(f, regClient)
		if !b.node {
			r.OriginalDst(f, at)
			at += nft.Reg(f.AddrLen() / 4)
		}
		return r.L4Proto(at).OriginalDstPort(at+1).
			DstAddr(f, regEndpoint).DstPort(port).
			Remember(affinityMaps[nodeIndex(b.node)], regClient, regEndpoint, s.ttl)
	case masquerade:
		return r.Mark(masqueradeBit)
	case goTo:
		return r.Do(nft.Goto(s.target))
	case fromPods:
		return r.SrcAddr(f, nft.R(0)).In(setPodRanges, nft.R(0)).Do(nft.Goto(s.target))
	case fromNode:
		return r.SrcLocal().Mark(masqueradeBit).Do(nft.Goto(s.target))
	case fromRange:
		mask := net.CIDRMask(s.source.Bits(), f.AddrLen()*8)
		return r.SrcAddr(f, nft.R(0)).
			Bitwise(nft.R(0), nft.R(0), mask, make([]byte, len(mask))).
			Cmp(nft.Eq, nft.R(0), s.source.Masked().Addr().AsSlice()).
			Do(nft.Goto(s.target))
	default:
		return r.Do(nft.Drop)
	}
}
