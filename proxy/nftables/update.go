package nftables

import (
	"errors"
	"slices"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
)

// update enters what leads from a port's programmed state to its new one, and
// returns the number of endpoints that are looked at for it.
func (b *Backend) update(u proxy.Update) (size int) {
	old := b.ports[u.Name]
	was, now := makeLayout(old), makeLayout(u.Port)
	for _, c := range now.chains {
		b.mirror.setChain(b.batch, b.family, c)
		b.users[c.name]++
	}
	for _, f := range was.fronts {
		b.unclaim(f.frontKey, u.Name)
		size += len(f.cluster) + len(f.local) + 1
	}
	for _, f := range now.fronts {
		b.claim(f, u.Name)
		size += len(f.cluster) + len(f.local) + 1
	}
	for _, c := range was.chains {
		if b.users[c.name]--; b.users[c.name] == 0 {
			delete(b.users, c.name)
		}
	}
	b.countHairpins(old, u.Port)
	b.stale.Add(old, u.Port)
	if u.Port == nil {
		delete(b.ports, u.Name)
	} else {
		b.ports[u.Name] = u.Port
	}
	return size
}

// claim enters a port as one that wants the front. Two Services may name the same
// external address and port: the first keeps it, the second has it afterwards.
func (b *Backend) claim(f front, owner proxy.PortName) {
	c := claim{owner, f.target}
	have := b.claims[f.frontKey]
	if i := slices.IndexFunc(have, func(x claim) bool { return x.owner == owner }); i >= 0 {
		have[i] = c
	} else {
		b.claims[f.frontKey] = append(have, c)
	}
	b.touched[f.frontKey] = true
}

func (b *Backend) unclaim(k frontKey, owner proxy.PortName) {
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
	leftover := func(k element, node bool) {
		if f := (frontKey{node, k.key}); len(b.claims[f]) == 0 {
			b.touched[f] = true
		}
	}
	for k := range b.mirror.links {
		leftover(k, k.set == mapNodePorts || k.set == mapRefusedNodePorts || k.set == stickyMaps[1])
	}
	for k := range b.mirror.lists {
		leftover(k, k.set == endpointMaps[index(false, true)] || k.set == endpointMaps[index(true, true)])
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
	var err error
	for _, set := range affinityMaps {
		if !slices.ContainsFunc(b.unstick, func(u unstick) bool { return u.set == set }) {
			continue
		}
		var keys [][]byte
		e := b.conn.Elements(b.family, b.cfg.Table, set, func(e nft.Element) {
			ep, ok := parseEndpoint(e.Data)
			if n := b.family.AddrLen(); ok && len(e.Key) > n && away[unstick{set, string(e.Key[n:]), ep}] {
				keys = append(keys, slices.Clone(e.Key))
			}
		})
		err = errors.Join(err, e)
		for _, k := range keys {
			b.batch.RemoveElement(set, k)
			// One by one: another may expire in the meantime.
			if e := b.conn.Commit(b.batch); e != nil && !errors.Is(e, nft.ErrNotFound) {
				err = errors.Join(err, e)
			}
		}
	}
	if err != nil {
		b.cfg.Log.Warn("some clients may keep trying an endpoint that has gone until their affinity ends", base.KeyError, err)
	}
	b.unstick = nil
}
