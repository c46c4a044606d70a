package nftables

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/periplus/periplus/linux/nft"
)

// A mirror is what the kernel's table holds, apart from the fixed part.
type mirror struct {
	chains  map[string]string // name to signature
	links   map[element]nft.Verdict
	lists   map[element][]netip.AddrPort // by front, in the kernel's order
	hairpin map[netip.Addr]bool
}

// An element is a key in one of the kernel's maps.
type element struct{ set, key string }

func newMirror() *mirror {
	return &mirror{
		chains:  map[string]string{},
		links:   map[element]nft.Verdict{},
		lists:   map[element][]netip.AddrPort{},
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

// setFront makes a front have a target; nil removes it. It returns the
// endpoints that clients may be stuck to although they have gone.
func (m *mirror) setFront(t *nft.Batch, k frontKey, want *target) (left []unstick) {
	if want == nil {
		want = &target{verdict: none}
	}
	for _, refuse := range []bool{false, true} {
		m.setLink(t, element{verdictMap(k.node, refuse), k.key}, want.verdict, want.verdict != none && want.refuse == refuse)
	}
	sticky := element{stickyMaps[nodeIndex(k.node)], k.key}
	_, was := m.links[sticky]
	if want.sticky != nil {
		m.setLink(t, sticky, nft.Goto(want.sticky.name), true)
	} else {
		m.setLink(t, sticky, none, false)
	}
	for _, local := range []bool{false, true} {
		endpoints, i := want.cluster, index(local, k.node)
		if local {
			endpoints = want.local
		}
		for _, e := range m.setList(t, element{endpointMaps[i], k.key}, endpoints) {
			if was {
				left = append(left, unstick{affinityMaps[nodeIndex(k.node)], k.key, e})
			}
		}
	}
	return left
}

// none is no verdict at all; a plain drop has a code that says so.
var none = nft.Verdict{Code: -100}

// setLink makes a map lead a key to a verdict, or, without present, nowhere.
func (m *mirror) setLink(t *nft.Batch, k element, want nft.Verdict, present bool) {
	have, ok := m.links[k]
	if ok && present && have == want {
		return
	}
	if ok {
		t.RemoveElement(k.set, []byte(k.key))
		delete(m.links, k)
	}
	if present {
		t.AddVerdict(k.set, []byte(k.key), want)
		m.links[k] = want
	}
}

// setList makes a list hold these endpoints, sorted, in any order. It returns
// those that have gone. Endpoints that stay keep their index where they can:
//
//	have  a b c d      want  a d e      →  index 1: e, 2: d, 3: gone
func (m *mirror) setList(t *nft.Batch, k element, want []netip.AddrPort) (gone []netip.AddrPort) {
	have := m.lists[k]
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
			key = endpointKey(key, k.key, i)
			t.RemoveElement(k.set, key)
		}
	}
	for i := len(want); i < len(have); i++ {
		key = endpointKey(key, k.key, i)
		t.RemoveElement(k.set, key)
	}
	for at, e := range want {
		if placed[at] {
			continue
		}
		i := holes[0]
		holes = holes[1:]
		slots[i] = e
		key, data = endpointKey(key, k.key, i), endpointData(data, e)
		t.AddElement(k.set, key, data)
	}
	if len(slots) == 0 {
		delete(m.lists, k)
	} else {
		m.lists[k] = slots
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
		for _, prefix := range []string{"one-of-", "masq-", "policy-", "from-", "remember-"} {
			if strings.HasPrefix(name, prefix) {
				m.chains[name] = strings.Join(comments[name], "\n")
			}
		}
	}
	for _, set := range append([]string{mapServices, mapNodePorts, mapRefused, mapRefusedNodePorts}, stickyMaps...) {
		err := c.Elements(f, table, set, func(e nft.Element) {
			m.links[element{set, string(e.Key)}] = e.Verdict
		})
		if err != nil {
			return nil, false, err
		}
	}
	for _, set := range endpointMaps {
		if complete, err := m.readLists(c, f, table, set); err != nil || !complete {
			return nil, false, err
		}
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
func (m *mirror) readLists(c *nft.Conn, f nft.Family, table, set string) (complete bool, err error) {
	for range 5 {
		maps.DeleteFunc(m.lists, func(k element, _ []netip.AddrPort) bool { return k.set == set })
		err := c.Elements(f, table, set, func(e nft.Element) {
			ep, ok := parseEndpoint(e.Data)
			n := len(e.Key) - 4
			if !ok || n <= 0 {
				return
			}
			k, index := element{set, string(e.Key[:n])}, int(binary.NativeEndian.Uint32(e.Key[n:]))
			list := m.lists[k]
			if index >= len(list) {
				list = append(list, make([]netip.AddrPort, index+1-len(list))...)
			}
			list[index] = ep
			m.lists[k] = list
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
