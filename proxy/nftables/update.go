package nftables

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
)

// update adds what leads from a port's programmed state to its new one.
func (b *Backend) update(u proxy.Update) {
	old, had := b.ports[u.Name]
	number := old.number
	if !had {
		number = b.takeNumber(u.Name)
	}
	was, now := makeLayout(old.port, number), makeLayout(u.Port, number)

	for _, c := range now.chains {
		b.mirror.setChain(b.batch, b.family, c)
		b.users[c.name]++
	}
	for _, l := range now.lists {
		for _, e := range b.mirror.setList(b.batch, l.id, l.endpoints) {
			if l.sticky {
				b.unstick = append(b.unstick, unstick{l.id, e})
			}
		}
	}
	for _, l := range was.links {
		b.unclaim(l.linkKey, u.Name)
	}
	for _, l := range now.links {
		b.claim(l, u.Name)
	}
	for _, c := range was.chains {
		if b.users[c.name]--; b.users[c.name] == 0 {
			delete(b.users, c.name)
		}
	}
	for _, l := range was.lists {
		if !slices.ContainsFunc(now.lists, func(n list) bool { return n.id == l.id }) {
			for _, e := range b.mirror.setList(b.batch, l.id, nil) {
				if l.sticky {
					b.unstick = append(b.unstick, unstick{l.id, e})
				}
			}
		}
	}
	b.countHairpins(old.port, u.Port)
	b.stale.add(old.port, u.Port)

	if u.Port == nil {
		delete(b.ports, u.Name)
		delete(b.numbers, number)
	} else {
		b.ports[u.Name] = portState{u.Port, number}
	}
}

// takeNumber gives a port its number, or the next free one.
func (b *Backend) takeNumber(name proxy.PortName) uint32 {
	n := numberOf(name)
	for {
		if _, taken := b.numbers[n]; !taken {
			b.numbers[n] = name
			return n
		}
		n = (n + 1) & 0x7fffffff
	}
}

// claim enters a port as one that wants the key. Two Services may name the same
// external address and port: the first keeps it, the second has it afterwards.
func (b *Backend) claim(l link, owner proxy.PortName) {
	c := claim{owner, l.value}
	have := b.claims[l.linkKey]
	if i := slices.IndexFunc(have, func(x claim) bool { return x.owner == owner }); i >= 0 {
		have[i] = c
	} else {
		b.claims[l.linkKey] = append(have, c)
	}
	b.touched[l.linkKey] = true
}

func (b *Backend) unclaim(k linkKey, owner proxy.PortName) {
	have := slices.DeleteFunc(b.claims[k], func(x claim) bool { return x.owner == owner })
	if len(have) == 0 {
		delete(b.claims, k)
	} else {
		b.claims[k] = have
	}
	b.touched[k] = true
}

func (b *Backend) countHairpins(old, new *proxy.Port) {
	if old != nil {
		for _, a := range old.OnNode {
			if b.onNode[a]--; b.onNode[a] == 0 {
				delete(b.onNode, a)
			}
			b.hairpin[a] = true
		}
	}
	if new != nil {
		for _, a := range new.OnNode {
			b.onNode[a]++
			b.hairpin[a] = true
		}
	}
}

// sweep removes what an earlier process left in the kernel and no port wants.
func (b *Backend) sweep() error {
	lists := map[uint32]bool{}
	for _, s := range b.ports {
		for _, x := range makeLayout(s.port, s.number).lists {
			lists[x.id] = true
		}
	}
	for k := range b.mirror.links {
		if len(b.claims[k]) == 0 {
			b.touched[k] = true
		}
	}
	for id := range b.mirror.lists {
		if !lists[id] {
			b.mirror.setList(b.batch, id, nil)
		}
	}
	for a := range b.mirror.hairpin {
		if b.onNode[a] == 0 {
			b.hairpin[a] = true
		}
	}
	b.keep = 0
	defer func() { b.keep = keepUnused }()
	return b.commit()
}

// removeUnused removes the chains that nobody uses, if there are more than keep.
func (b *Backend) removeUnused(keep int) {
	if len(b.mirror.chains)-len(b.users) <= keep {
		return
	}
	for name := range b.mirror.chains {
		if b.users[name] == 0 {
			b.mirror.removeChain(b.batch, name)
		}
	}
}

// unstickClients removes from the affinity map who is stuck to an endpoint that
// has gone, so that the client's next connection chooses again.
func (b *Backend) unstickClients() {
	if len(b.unstick) == 0 {
		return
	}
	away := map[unstick]bool{}
	for _, u := range b.unstick {
		away[u] = true
	}
	var keys [][]byte
	err := b.conn.Elements(b.family, b.cfg.Table, mapAffinity, func(e nft.Element) {
		ep, ok := parseEndpoint(e.Data)
		if n := len(e.Key) - 4; ok && n > 0 && away[unstick{binary.NativeEndian.Uint32(e.Key[n:]), ep}] {
			keys = append(keys, slices.Clone(e.Key))
		}
	})
	for _, k := range keys {
		b.batch.RemoveElement(mapAffinity, k)
		// One by one: another may expire in the meantime.
		if e := b.conn.Commit(b.batch); e != nil && !errors.Is(e, nft.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		b.cfg.Log.Warn("some clients may keep trying an endpoint that has gone until their affinity ends", base.KeyError, err)
	}
	b.unstick = nil
}
