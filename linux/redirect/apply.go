package redirect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/periplus/periplus/linux/nft"
)

// table is ours: it is made anew by each Apply.
const table = "periplus-mesh"

// Apply puts the rules into the network namespace of the calling thread: for IPv4,
// and for IPv6 if the namespace has an address of it. It may be called again.
func Apply(c Config) error {
	families := []nft.Family{nft.IPv4}
	if hasIPv6() {
		families = append(families, nft.IPv6)
	}
	conn, err := nft.Open()
	if err != nil {
		return fmt.Errorf("redirect to the proxy: %w", err)
	}
	defer conn.Close()
	for _, f := range families {
		if err := apply(conn, f, &c); err != nil {
			return fmt.Errorf("redirect to the proxy: %w", err)
		}
	}
	return nil
}

func apply(conn *nft.Conn, f nft.Family, c *Config) error {
	addrs := loopbacks[0]
	if f == nft.IPv6 {
		addrs = loopbacks[1]
	}
	b := nft.NewBatch(f, table)
	b.AddTable()
	if there, err := conn.HasTable(f, table); err != nil {
		return err
	} else if there {
		b.RemoveTable()
		b.AddTable()
	}
	b.AddChain(hookPrerouting, &nft.Hook{Type: "nat", Num: nft.Prerouting, Priority: nft.PriorityDstNAT})
	b.AddChain(hookOutput, &nft.Hook{Type: "nat", Num: nft.Output, Priority: nft.PriorityDstNAT})
	for _, chain := range []string{chainInbound, chainInRedirect, chainOutput, chainRedirect} {
		b.AddChain(chain, nil)
	}
	for _, r := range c.rules(addrs[0], addrs[1]) {
		b.AddRule(r.chain, r.text(c.ID), r.compile(f, c.ID))
	}
	return conn.Commit(b)
}

// compile builds a rule's expressions.
func (r *rule) compile(f nft.Family, id uint32) *nft.Rule {
	n := nft.NewRule()
	if r.loopback {
		n.OIfName("lo", false)
	}
	n.L4Proto(nft.R(0)).Cmp(nft.Eq, nft.R(0), []byte{unix.IPPROTO_TCP})
	if r.src.IsValid() {
		n.SrcAddr(f, nft.R(0)).Cmp(nft.Eq, nft.R(0), r.src.Addr().AsSlice())
	}
	if r.dst.IsValid() {
		n.DstAddr(f, nft.R(0))
		if bits := r.dst.Bits(); bits < r.dst.Addr().BitLen() {
			mask := net.CIDRMask(bits, r.dst.Addr().BitLen())
			n.Bitwise(nft.R(0), nft.R(0), mask, make([]byte, len(mask)))
		}
		n.Cmp(op(r.notDst), nft.R(0), r.dst.Masked().Addr().AsSlice())
	}
	if r.port != 0 {
		n.DstPort(nft.R(0)).Cmp(op(r.notPort), nft.R(0), binary.BigEndian.AppendUint16(nil, r.port))
	}
	switch r.owner {
	case proxyUser, notProxyUser:
		n.ID(nft.MetaUID, op(r.owner == notProxyUser), id)
	case proxyGroup, notProxyGroup:
		n.ID(nft.MetaGID, op(r.owner == notProxyGroup), id)
	}
	switch r.target {
	case "":
		return n.Redirect(r.to)
	case doReturn:
		return n.Do(nft.Return)
	}
	return n.Do(nft.Jump(r.target))
}

func op(not bool) nft.Op {
	if not {
		return nft.Neq
	}
	return nft.Eq
}

// hasIPv6 reports whether this namespace has an IPv6 address that others can reach.
func hasIPv6() bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil && n.IP.IsGlobalUnicast() {
			return true
		}
	}
	return false
}

// ErrNotRedirected is returned by OriginalDestination for a connection that was
// made to where it arrived.
var ErrNotRedirected = errors.New("the connection was not redirected")
