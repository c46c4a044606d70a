package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
)

// A Layout is what the kernel of one node has to hold.
type Layout struct {
	// Ingress and Egress say by which chain a pod's address is judged.
	Ingress, Egress map[netip.Addr]string
	// Chains are the rules by name: a connection that none matches is dropped.
	Chains map[string][]Match
	// Sets are the peers by name.
	Sets map[string]*Set
}

// A Set holds peers: addresses, or what listens under a port name.
type Set struct {
	Endpoints bool // address . protocol . port, else addresses
	Members   map[Member]bool
}

// A Member is an address; in sets of endpoints with what it listens on.
type Member struct {
	Address  netip.Addr
	Protocol uint8
	Port     uint16
}

// A Match allows connections; what is empty matches all.
type Match struct {
	Set       string // the peer is in this set
	Endpoints bool   // which holds protocols and ports too
	Block     netip.Prefix
	Except    []netip.Prefix // of Block
	Protocol  uint8
	Port, End uint16 // a range; End is Port for one
}

// String says all that is in it.
func (m Match) String() string {
	var s []string
	if m.Set != "" {
		s = append(s, "@"+m.Set)
	}
	if m.Block.IsValid() {
		s = append(s, m.Block.String())
	}
	for _, e := range m.Except {
		s = append(s, "not "+e.String())
	}
	if m.Protocol != 0 {
		s = append(s, protocolNames[m.Protocol])
	}
	if m.Port != 0 {
		s = append(s, fmt.Sprintf("%d-%d", m.Port, m.End))
	}
	if s == nil {
		return "all"
	}
	return strings.Join(s, " ")
}

var protocolNames = map[uint8]string{6: "tcp", 17: "udp", 132: "sctp"}

func chainName(prefix string, rules []Match) string {
	var text strings.Builder
	for _, m := range rules {
		text.WriteString(m.String() + "\n")
	}
	return prefix + hash(text.String())
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
