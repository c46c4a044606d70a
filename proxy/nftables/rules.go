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
	choose         kind = iota // a random endpoint of the list
	stick                      // the endpoint that this client had last time, if any
	chooseAndStick             // a random endpoint, remembered for the client
	masquerade                 // mark for masquerading
	goTo                       // go to target
	fromPods                   // pods go to target
	fromNode                   // the node itself goes to target, masqueraded
	fromRange                  // clients in source go to target
	drop
)

// A step is one rule. It is comparable; its comment says all that is in it.
type step struct {
	kind     kind
	balancer balancer
	target   string
	source   netip.Prefix
}

func (s step) comment() string {
	switch s.kind {
	case choose:
		return fmt.Sprintf("1 of %d", s.balancer.n)
	case stick:
		return "as last time"
	case chooseAndStick:
		return fmt.Sprintf("1 of %d for %d s", s.balancer.n, s.balancer.ttl/time.Second)
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

// masqueradeBit of the packet mark is upstream's.
const masqueradeBit = 0x4000

// Registers of a balancer, for the longest addresses:
//
//	0-3 client, 4 list   the key of affinity (with IPv4: 0 client, 1 list)
//	4 list, 5 index      the key of endpoints
//	6-9 endpoint, 10 port
//	0-5                  what the client sent to, until the list is known
var (
	regAny      = nft.R(0)
	regEndpoint = nft.R(6)
)

// find appends what a balancer's steps have in common: find the list.
func (s step) find(r *nft.Rule, f nft.Family, list nft.Reg) *nft.Rule {
	if s.balancer.port {
		r.L4Proto(regAny).DstPort(regAny + 1)
	} else {
		words := nft.Reg(f.AddrLen() / 4)
		r.DstAddr(f, regAny).L4Proto(regAny + words).DstPort(regAny + words + 1)
	}
	return r.Map(s.balancer.lists(), regAny, list)
}

func (s step) rule(f nft.Family) *nft.Rule {
	r := nft.NewRule()
	words := nft.Reg(f.AddrLen() / 4)
	list := regAny + words
	port := regEndpoint + words
	switch s.kind {
	case choose:
		return s.find(r, f, list).Random(list+1, s.balancer.n).
			Map(mapEndpoints, list, regEndpoint).
			DNAT(f, regEndpoint, port)
	case stick:
		return s.find(r, f, list).SrcAddr(f, regAny).
			Map(mapAffinity, regAny, regEndpoint).
			Remember(mapAffinity, regAny, regEndpoint, s.balancer.ttl).
			DNAT(f, regEndpoint, port)
	case chooseAndStick:
		return s.find(r, f, list).SrcAddr(f, regAny).Random(list+1, s.balancer.n).
			Map(mapEndpoints, list, regEndpoint).
			Remember(mapAffinity, regAny, regEndpoint, s.balancer.ttl).
			DNAT(f, regEndpoint, port)
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
