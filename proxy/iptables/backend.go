package iptables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/periplus/periplus/linux/conntrack"
	"github.com/periplus/periplus/linux/iptables"
	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
)

// Backend programs the nat and filter tables in the network namespace of the
// thread that called New.
type Backend struct {
	config proxy.BackendConfig
	tool   *iptables.Tool
	track  *conntrack.Conn
	nft    *nft.Conn
	ports  map[proxy.PortName]entry
	stale  proxy.StaleFlows
	lost   chan struct{}
}

type entry struct {
	port  *proxy.Port
	block *block
}

var _ proxy.Backend = (*Backend)(nil)

// New finds iptables; it changes nothing yet.
func New(c proxy.BackendConfig) (*Backend, error) {
	if err := c.Complete(); err != nil {
		return nil, err
	}
	tool, err := iptables.Open(c.IPv6)
	if errors.Is(err, iptables.ErrMissing) {
		return nil, fmt.Errorf("%w: %w", proxy.ErrMissing, err)
	}
	if err != nil {
		return nil, err
	}
	b := &Backend{config: c, tool: tool, ports: map[proxy.PortName]entry{}, lost: make(chan struct{})}
	if b.track, err = conntrack.Open(); err != nil {
		_ = tool.Close()
		return nil, err
	}
	if b.nft, err = nft.Open(); err != nil {
		_ = tool.Close()
		_ = b.track.Close()
		return nil, err
	}
	return b, nil
}

// Name is "iptables".
func (b *Backend) Name() string { return "iptables" }

// IPv6 says which family the backend serves.
func (b *Backend) IPv6() bool { return b.config.IPv6 }

// Lost is never signalled: the kernel does not tell of changes to iptables. Chains
// that somebody empties come back with the next change.
func (b *Backend) Lost() <-chan struct{} { return b.lost }

// Close leaves the rules as they are.
func (b *Backend) Close() error { return errors.Join(b.nft.Close(), b.track.Close(), b.tool.Close()) }

// Replace writes all ports and removes the chains of others.
func (b *Backend) Replace(ctx context.Context, ports []*proxy.Port) error {
	before := b.ports
	b.ports = make(map[proxy.PortName]entry, len(ports))
	for _, p := range ports {
		e := entry{p, render(b.config, p)}
		b.ports[p.Name] = e
		b.stale.Add(before[p.Name].port, p)
	}
	saved, err := b.tool.Save(ctx, "nat")
	if err != nil {
		return err
	}
	savedFilter, err := b.tool.Save(ctx, "filter")
	if err != nil {
		return err
	}
	all := b.blocks()
	wanted := map[string]bool{}
	for _, x := range all {
		for _, c := range x.chains {
			wanted[c] = true
		}
	}
	gone := slices.DeleteFunc(portChains(saved), func(c string) bool { return wanted[c] })
	var t text
	filter(&t, b.config, all, missingJumps("filter", savedFilter))
	nat(&t, b.config, all, all, gone, missingJumps("nat", saved))
	return b.restore(ctx, &t)
}

// Apply writes the changed ports.
func (b *Backend) Apply(ctx context.Context, updates []proxy.Update) error {
	var changed []*block
	old := map[string]bool{}
	for _, u := range updates {
		before := b.ports[u.Name]
		if before.block != nil {
			for _, c := range before.block.chains {
				old[c] = true
			}
		}
		b.stale.Add(before.port, u.Port)
		if u.Port == nil {
			delete(b.ports, u.Name)
			continue
		}
		e := entry{u.Port, render(b.config, u.Port)}
		b.ports[u.Name] = e
		changed = append(changed, e.block)
	}
	for _, x := range changed {
		for _, c := range x.chains {
			delete(old, c)
		}
	}
	all := b.blocks()
	var t text
	filter(&t, b.config, all, nil)
	nat(&t, b.config, all, changed, slices.Sorted(maps.Keys(old)), nil)
	return b.restore(ctx, &t)
}

// restore carries out text; after it UDP clients are let go.
func (b *Backend) restore(ctx context.Context, t *text) error {
	if err := b.tool.Restore(ctx, t.Bytes()); err != nil {
		return fmt.Errorf("service rules: %w", err)
	}
	b.stale.Remove(b.track, b.config.IPv6, b.config.Log)
	return nil
}

// blocks are all blocks, sorted by the names of their ports: of two that want the
// same address the first has it.
func (b *Backend) blocks() []*block {
	entries := slices.SortedFunc(maps.Values(b.ports), func(x, y entry) int {
		return cmp.Compare(x.port.Name.String(), y.port.Name.String())
	})
	out := make([]*block, len(entries))
	for i, e := range entries {
		out[i] = e.block
	}
	return out
}

// Cleanup removes the chains and the jumps to them.
func (b *Backend) Cleanup() error {
	ctx := context.Background()
	b.ports = map[proxy.PortName]entry{}
	for _, table := range []string{"nat", "filter"} {
		saved, err := b.tool.Save(ctx, table)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(fixed[table], func(c string) bool { return hasChain(saved, c) }) && len(portChains(saved)) == 0 {
			continue
		}
		var t text
		without(&t, table, saved)
		if err := b.tool.Restore(ctx, t.Bytes()); err != nil {
			return fmt.Errorf("remove service rules: %w", err)
		}
		if err := b.removeEmpty(ctx, table); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes a table in which nothing is left but the kernel's own chains:
// iptables over nf_tables makes tables at first use and never removes them.
func (b *Backend) removeEmpty(ctx context.Context, table string) error {
	saved, err := b.tool.Save(ctx, table)
	if err != nil || !isEmpty(saved) {
		return err
	}
	family := nft.IPv4
	if b.config.IPv6 {
		family = nft.IPv6
	}
	t := nft.NewBatch(family, table)
	t.AddTable()
	t.RemoveTable()
	return b.nft.Commit(t)
}
