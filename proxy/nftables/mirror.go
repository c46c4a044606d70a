package nftables

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/periplus/periplus/linux/nft"
)

// A mirror is what the kernel's table holds, apart from the fixed part.
type mirror struct {
	chains  map[string]string // name to signature
	links   map[linkKey]value
	lists   map[uint32][]netip.AddrPort // in the kernel's order
	hairpin map[netip.Addr]bool
}

func newMirror() *mirror {
	return &mirror{
		chains:  map[string]string{},
		links:   map[linkKey]value{},
		lists:   map[uint32][]netip.AddrPort{},
		hairpin: map[netip.Addr]bool{},
	}
}

// setChain makes a chain hold these steps.
func (m *mirror) setChain(t *nft.Batch, f nft.Family, c chain) {
	want := c.signature()
	have, ok := m.chains[c.name]
	if ok && have == want {
		return
	}
	if ok {
		t.FlushChain(c.name)
	} else {
		t.AddChain(c.name, nil)
	}
	for _, s := range c.steps {
		t.AddRule(c.name, s.comment(), s.rule(f))
	}
	m.chains[c.name] = want
}

func (m *mirror) removeChain(t *nft.Batch, name string) {
	if _, ok := m.chains[name]; ok {
		t.FlushChain(name) // others that go may be what its rules lead to
		t.RemoveChain(name)
		delete(m.chains, name)
	}
}

// setLink makes a map lead a key to a value; nil removes it.
func (m *mirror) setLink(t *nft.Batch, k linkKey, want *value) {
	have, ok := m.links[k]
	if ok && want != nil && have == *want {
		return
	}
	if ok {
		t.RemoveElement(k.set, []byte(k.key))
		delete(m.links, k)
	}
	if want != nil {
		if want.list {
			t.AddElement(k.set, []byte(k.key), binary.NativeEndian.AppendUint32(nil, want.id))
		} else {
			t.AddVerdict(k.set, []byte(k.key), want.verdict)
		}
		m.links[k] = *want
	}
}

// setList makes a list hold these endpoints, sorted, in any order. It returns
// those that have gone. Endpoints that stay keep their index where they can:
//
//	have  a b c d      want  a d e      →  index 1: e, 2: d, 3: gone
func (m *mirror) setList(t *nft.Batch, id uint32, want []netip.AddrPort) (gone []netip.AddrPort) {
	have := m.lists[id]
	if len(have) == 0 && len(want) == 0 {
		return nil
	}
	// 1. Who stays where it is, who must move, who goes.
	placed := make([]bool, len(want)) // has an index below len(want)
	var holes []int
	slots := make([]netip.AddrPort, len(want))
	for i, e := range have {
		at, ok := slices.BinarySearchFunc(want, e, netip.AddrPort.Compare)
		switch {
		case !ok:
			gone = append(gone, e)
		case i < len(want) && !placed[at]:
			placed[at] = true
			slots[i] = e
		}
	}
	for i := range slots {
		if !slots[i].IsValid() {
			holes = append(holes, i)
		}
	}
	// 2. What is in a hole or past the end goes, then the homeless move in.
	var key, data []byte
	for _, i := range holes {
		if i < len(have) {
			key = endpointKey(key, id, uint32(i))
			t.RemoveElement(mapEndpoints, key)
		}
	}
	for i := len(want); i < len(have); i++ {
		key = endpointKey(key, id, uint32(i))
		t.RemoveElement(mapEndpoints, key)
	}
	for at, e := range want {
		if placed[at] {
			continue
		}
		i := holes[0]
		holes = holes[1:]
		slots[i] = e
		key, data = endpointKey(key, id, uint32(i)), endpointData(data, e)
		t.AddElement(mapEndpoints, key, data)
	}
	if len(slots) == 0 {
		delete(m.lists, id)
	} else {
		m.lists[id] = slots
	}
	return gone
}

// setHairpin says whether a is an endpoint on this node.
func (m *mirror) setHairpin(t *nft.Batch, a netip.Addr, want bool) {
	if m.hairpin[a] == want {
		return
	}
	key := append(a.AsSlice(), a.AsSlice()...)
	if want {
		t.AddElement(setHairpin, key, nil)
		m.hairpin[a] = true
	} else {
		t.RemoveElement(setHairpin, key)
		delete(m.hairpin, a)
	}
}

// readMirror reads the table; ok is false when it is not there or its fixed
// part is another one's.
func readMirror(c *nft.Conn, f nft.Family, table, comment string) (m *mirror, ok bool, err error) {
	if has, err := c.HasTable(f, table); err != nil || !has {
		return nil, false, err
	}
	rules, err := c.Rules(f, table)
	if err != nil {
		return nil, false, err
	}
	m = newMirror()
	comments := map[string][]string{}
	for _, r := range rules {
		comments[r.Chain] = append(comments[r.Chain], r.Comment)
	}
	if base := comments[chainServices]; len(base) == 0 || base[0] != comment {
		return nil, false, nil
	}
	chains, err := c.Chains(f, table)
	if err != nil {
		return nil, false, err
	}
	for _, name := range chains {
		for _, prefix := range []string{"one-of-", "masq-", "policy-", "from-"} {
			if strings.HasPrefix(name, prefix) {
				m.chains[name] = strings.Join(comments[name], "\n")
			}
		}
	}
	for _, set := range slices.Concat(verdictMaps, listMaps) {
		err := c.Elements(f, table, set, func(e nft.Element) {
			v := value{verdict: e.Verdict}
			if len(e.Data) == 4 {
				v = value{list: true, id: binary.NativeEndian.Uint32(e.Data)}
			}
			m.links[linkKey{set, string(e.Key)}] = v
		})
		if err != nil {
			return nil, false, err
		}
	}
	if complete, err := m.readLists(c, f, table); err != nil || !complete {
		return nil, false, err
	}
	err = c.Elements(f, table, setHairpin, func(e nft.Element) {
		if a, ok := netip.AddrFromSlice(e.Key[:len(e.Key)/2]); ok {
			m.hairpin[a] = true
		}
	})
	return m, err == nil, err
}

// readLists reads the lists of endpoints. The kernel's table may be growing
// while it is walked, so that elements come twice or not at all: a list with an
// index missing says so, and the walk is done again.
func (m *mirror) readLists(c *nft.Conn, f nft.Family, table string) (complete bool, err error) {
	for range 5 {
		clear(m.lists)
		err := c.Elements(f, table, mapEndpoints, func(e nft.Element) {
			ep, ok := parseEndpoint(e.Data)
			if !ok || len(e.Key) != 8 {
				return
			}
			id, index := binary.NativeEndian.Uint32(e.Key), int(binary.NativeEndian.Uint32(e.Key[4:]))
			list := m.lists[id]
			if index >= len(list) {
				list = append(list, make([]netip.AddrPort, index+1-len(list))...)
			}
			list[index] = ep
			m.lists[id] = list
		})
		if err != nil {
			return false, err
		}
		if m.complete() {
			return true, nil
		}
	}
	return false, nil
}

func (m *mirror) complete() bool {
	for _, list := range m.lists {
		if slices.ContainsFunc(list, func(e netip.AddrPort) bool { return !e.IsValid() }) {
			return false
		}
	}
	return true
}
