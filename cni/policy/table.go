package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/periplus/periplus/linux/nft"
)

// Names of what is always in the table.
const (
	mapIngress = "ingress"
	mapEgress  = "egress"
	chainBase  = "forward"
	chainNew   = "connections"
)

// A Table makes the kernel hold a Layout.
type Table struct {
	name   string
	family nft.Family
	conn   *nft.Conn
	held   *Layout // nil: not known, or no table
}

// OpenTable connects to the kernel, in the namespace of the calling thread; it
// changes nothing yet. The default name is periplus-policy.
func OpenTable(name string, ipv6 bool) (*Table, error) {
	if name == "" {
		name = "periplus-policy"
	}
	t := &Table{name: name, family: nft.IPv4}
	if ipv6 {
		t.family = nft.IPv6
	}
	var err error
	t.conn, err = nft.Open()
	return t, err
}

// Close leaves the rules as they are.
func (t *Table) Close() error { return t.conn.Close() }

// Remove removes all rules; it is no error that there are none.
func (t *Table) Remove() error {
	t.held = nil
	b := nft.NewBatch(t.family, t.name)
	b.AddTable()
	b.RemoveTable()
	return t.conn.Commit(b)
}

// Apply changes what differs in one transaction. The first time, and after an
// error, it replaces what an earlier process left, in one transaction too.
func (t *Table) Apply(want *Layout) error {
	b := nft.NewBatch(t.family, t.name)
	held := t.held
	if held == nil {
		held = &Layout{}
		t.base(b)
	}
	t.sets(b, held, want)
	t.chains(b, held, want)
	for name := range held.Sets { // after the rules that refer to them
		if want.Sets[name] == nil {
			b.RemoveSet(name)
		}
	}
	t.pods(b, mapIngress, held.Ingress, want.Ingress)
	t.pods(b, mapEgress, held.Egress, want.Egress)
	t.held = nil
	if b.Len() > 0 {
		if err := t.conn.Commit(b); err != nil {
			return fmt.Errorf("network policies: %w", err)
		}
	}
	t.held = want
	return nil
}

func (t *Table) base(b *nft.Batch) {
	f := t.family
	b.AddTable()
	b.RemoveTable()
	b.AddTable()
	for _, name := range []string{mapIngress, mapEgress} {
		b.AddSet(nft.Set{Name: name, KeyType: f.AddrType(), KeyLen: f.AddrLen(), DataType: nft.TypeVerdict})
	}
	b.AddChain(chainNew, nil)
	b.AddChain(chainBase, &nft.Hook{Type: "filter", Num: nft.Forward, Priority: nft.PriorityFilter})
	b.AddRule(chainBase, "", nft.NewRule().CtNew().Do(nft.Jump(chainNew)))
	b.AddRule(chainNew, "", nft.NewRule().SrcAddr(f, nft.R(0)).VMap(mapEgress, nft.R(0)))
	b.AddRule(chainNew, "", nft.NewRule().DstAddr(f, nft.R(0)).VMap(mapIngress, nft.R(0)))
}

func (t *Table) sets(b *nft.Batch, held, want *Layout) {
	for name, s := range want.Sets {
		old := held.Sets[name]
		if old == nil {
			old = &Set{}
			b.AddSet(t.set(name, s))
		}
		for m := range s.Members {
			if !old.Members[m] {
				b.AddElement(name, key(m, s.Endpoints), nil)
			}
		}
		for m := range old.Members {
			if !s.Members[m] {
				b.RemoveElement(name, key(m, s.Endpoints))
			}
		}
	}
}

func (t *Table) set(name string, s *Set) nft.Set {
	out := nft.Set{Name: name, KeyType: t.family.AddrType(), KeyLen: t.family.AddrLen()}
	if s.Endpoints {
		out.KeyType, out.KeyLen = nft.Concat(t.family.AddrType(), nft.TypeProto, nft.TypePort), t.family.AddrLen()+8
	}
	return out
}

// key is a member as the kernel has it: parts are padded to four bytes.
func key(m Member, endpoint bool) []byte {
	k := m.Address.AsSlice()
	if endpoint {
		k = append(k, m.Protocol, 0, 0, 0)
		k = append(binary.BigEndian.AppendUint16(k, m.Port), 0, 0)
	}
	return k
}

func (t *Table) chains(b *nft.Batch, held, want *Layout) {
	for _, name := range slices.Sorted(maps.Keys(want.Chains)) {
		if _, ok := held.Chains[name]; ok {
			continue
		}
		b.AddChain(name, nil)
		for _, m := range want.Chains[name] {
			b.AddRule(name, m.String(), t.rule(m, name[:2] == "in"))
		}
		b.AddRule(name, "no policy allows it", nft.NewRule().Do(nft.Drop))
	}
	for name := range held.Chains {
		if _, ok := want.Chains[name]; !ok {
			b.RemoveChain(name)
		}
	}
}

// rule lets what matches return to the caller, where the other direction is judged.
func (t *Table) rule(m Match, ingress bool) *nft.Rule {
	r := nft.NewRule()
	words := nft.Reg(t.family.AddrLen() / 4) //nolint:gosec // 1 or 4
	if m.Set != "" || m.Block.IsValid() {
		if ingress {
			r.SrcAddr(t.family, nft.R(0))
		} else {
			r.DstAddr(t.family, nft.R(0))
		}
	}
	switch {
	case m.Endpoints:
		r.L4Proto(nft.R(0)+words).DstPort(nft.R(0)+words+1).In(m.Set, nft.R(0))
		return r.Do(nft.Return)
	case m.Set != "":
		r.In(m.Set, nft.R(0))
	case m.Block.IsValid():
		t.prefix(r, nft.Eq, m.Block)
		for _, e := range m.Except {
			t.prefix(r, nft.Neq, e)
		}
	}
	if m.Protocol != 0 {
		r.L4Proto(nft.R(0)).Cmp(nft.Eq, nft.R(0), []byte{m.Protocol})
	}
	switch port := func(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }; {
	case m.Port == 0:
	case m.End <= m.Port:
		r.DstPort(nft.R(0)).Cmp(nft.Eq, nft.R(0), port(m.Port))
	default:
		r.DstPort(nft.R(0)).Cmp(nft.Gte, nft.R(0), port(m.Port)).Cmp(nft.Lte, nft.R(0), port(m.End))
	}
	return r.Do(nft.Return)
}

// prefix compares the address in register 0 with a range.
func (t *Table) prefix(r *nft.Rule, op nft.Op, p netip.Prefix) {
	mask := net.CIDRMask(p.Bits(), t.family.AddrLen()*8)
	at := nft.R(t.family.AddrLen() / 4) // beside the address, which later comparisons need
	r.Bitwise(nft.R(0), at, mask, make([]byte, len(mask))).Cmp(op, at, p.Addr().AsSlice())
}

func (t *Table) pods(b *nft.Batch, name string, held, want map[netip.Addr]string) {
	for a, chain := range want {
		old, ok := held[a]
		if ok && old == chain {
			continue
		}
		if ok {
			b.RemoveElement(name, a.AsSlice())
		}
		b.AddVerdict(name, a.AsSlice(), nft.Jump(chain))
	}
	for a := range held {
		if _, ok := want[a]; !ok {
			b.RemoveElement(name, a.AsSlice())
		}
	}
}

// Cleanup removes what any process left.
func Cleanup() error {
	var errs []error
	for _, ipv6 := range []bool{false, true} {
		t, err := OpenTable("", ipv6)
		if err != nil {
			return err
		}
		errs = append(errs, t.Remove(), t.Close())
	}
	return errors.Join(errs...)
}
