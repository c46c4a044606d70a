package cni

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ErrPoolExhausted is returned when every address of a range is in use.
var ErrPoolExhausted = errors.New("no address left in the node's pod range")

// A Pool gives out the addresses of one range, each to one owner (a string
// without a line feed, not empty). The first address of the range is the
// gateway's; it, the network's address and, with IPv4, the broadcast address are
// never given out. An address that was freed comes again only after all others.
//
// What is given out is on disk, one symbolic link an address whose target is the
// owner: making and removing one is atomic, so that a crash at any moment leaves
// either state. Nothing is synced: after a power cut no sandbox is left that
// could own an address.
//
//	<dir>/10.42.0.5 -> 3f2a…/eth0
//	<dir>/last      -> 10.42.0.5
type Pool struct {
	dir    string
	prefix netip.Prefix

	mu     sync.Mutex // guards what follows
	owners map[netip.Addr]string
	addrs  map[string]netip.Addr
	last   netip.Addr // the one given out last
}

// OpenPool opens the pool of a range below dir, which is made if necessary.
func OpenPool(dir string, prefix netip.Prefix) (*Pool, error) {
	prefix = prefix.Masked()
	if prefix.Addr().BitLen()-prefix.Bits() < 2 {
		return nil, fmt.Errorf("pod range %s is too small, must hold at least 4 addresses", prefix)
	}
	p := &Pool{
		dir:    filepath.Join(dir, strings.NewReplacer("/", "_", ":", "-").Replace(prefix.String())),
		prefix: prefix,
		owners: map[netip.Addr]string{},
		addrs:  map[string]netip.Addr{},
		last:   prefix.Addr().Next(),
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("address pool: %w", err)
	}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, fmt.Errorf("address pool: %w", err)
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(p.dir, e.Name()))
		if err != nil || target == "" {
			continue
		}
		if e.Name() == "last" {
			if a, err := netip.ParseAddr(target); err == nil && p.usable(a) {
				p.last = a
			}
			continue
		}
		if a, err := netip.ParseAddr(e.Name()); err == nil && prefix.Contains(a) {
			p.owners[a], p.addrs[target] = target, a
		}
	}
	return p, nil
}

// OpenPools opens every pool that is below dir.
func OpenPools(dir string) ([]*Pool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("address pools: %w", err)
	}
	var out []*Pool
	for _, e := range entries {
		prefix, err := netip.ParsePrefix(strings.NewReplacer("_", "/", "-", ":").Replace(e.Name()))
		if err != nil || !e.IsDir() {
			continue
		}
		p, err := OpenPool(dir, prefix)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Prefix is the pool's range.
func (p *Pool) Prefix() netip.Prefix { return p.prefix }

// Gateway is the range's first address.
func (p *Pool) Gateway() netip.Addr { return p.prefix.Addr().Next() }

// usable says whether a may be given out.
func (p *Pool) usable(a netip.Addr) bool {
	if !p.prefix.Contains(a) || a == p.prefix.Addr() || a == p.Gateway() {
		return false
	}
	return a.Is6() || p.prefix.Contains(a.Next())
}

// Allocate gives owner an address: the one that it has, else one of those wanted that is
// free, else any free one.
func (p *Pool) Allocate(owner string, wanted ...netip.Addr) (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.addrs[owner]; ok {
		return a, nil
	}
	for _, a := range wanted {
		if _, used := p.owners[a]; used || !p.usable(a) {
			continue
		}
		if err := os.Symlink(owner, p.path(a)); err != nil {
			return netip.Addr{}, fmt.Errorf("allocate %s: %w", a, err)
		}
		p.owners[a], p.addrs[owner] = owner, a
		return a, nil
	}
	wrapped := false
	for a := p.last.Next(); ; a = a.Next() {
		if !p.usable(a) {
			// The end of the range: once more from its start.
			if wrapped {
				return netip.Addr{}, fmt.Errorf("%s: %w", p.prefix, ErrPoolExhausted)
			}
			wrapped = true
			a = p.Gateway()
			continue
		}
		if _, used := p.owners[a]; used {
			if wrapped && a == p.last {
				return netip.Addr{}, fmt.Errorf("%s: %w", p.prefix, ErrPoolExhausted)
			}
			continue
		}
		if err := os.Symlink(owner, p.path(a)); err != nil {
			return netip.Addr{}, fmt.Errorf("allocate %s: %w", a, err)
		}
		p.owners[a], p.addrs[owner], p.last = owner, a, a
		p.saveLastLocked()
		return a, nil
	}
}

// saveLastLocked keeps the order over a restart; without it addresses come again
// a little earlier.
func (p *Pool) saveLastLocked() {
	next := filepath.Join(p.dir, "last.next")
	_ = os.Remove(next)
	if os.Symlink(p.last.String(), next) == nil {
		_ = os.Rename(next, filepath.Join(p.dir, "last"))
	}
}

// Lookup returns the address of owner.
func (p *Pool) Lookup(owner string) (netip.Addr, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.addrs[owner]
	return a, ok
}

// Release frees the address of owner, if it has one.
func (p *Pool) Release(owner string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.addrs[owner]
	if !ok {
		return nil
	}
	if err := os.Remove(p.path(a)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("release %s: %w", a, err)
	}
	delete(p.addrs, owner)
	delete(p.owners, a)
	return nil
}

// Owners returns everybody who has an address.
func (p *Pool) Owners() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]string, 0, len(p.addrs))
	for o := range p.addrs {
		out = append(out, o)
	}
	return out
}

func (p *Pool) path(a netip.Addr) string { return filepath.Join(p.dir, a.String()) }
