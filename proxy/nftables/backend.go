package nftables

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/conntrack"
	"github.com/periplus/periplus/linux/netns"
	"github.com/periplus/periplus/linux/nft"
	"github.com/periplus/periplus/proxy"
)

// maxBatch bounds one transaction, in endpoints of the ports that it changes:
// the kernel copies it as a whole, and other transactions wait.
const maxBatch = 50_000

// keepUnused is how many chains that nobody uses may stay: Services grow and
// shrink, and a chain that comes back costs more than one that stays.
const keepUnused = 32

// Backend programs one table in the network namespace of the thread that called New.
type Backend struct {
	cfg    Config
	family nft.Family
	ns     *netns.NS
	conn   *nft.Conn
	track  *conntrack.Conn
	watch  *nft.Watch
	lost   chan struct{} // never signalled; stands in for the watch's

	mirror   *mirror // nil until the first Replace
	distrust bool    // the last Replace failed
	ports    map[proxy.PortName]*proxy.Port
	claims   map[frontKey][]claim // who wants a key; the first has it
	users    map[string]int       // how many ports use a chain
	onNode   map[netip.Addr]int   // how many ports have an endpoint there on this node

	keep    int // unused chains that may stay
	batch   *nft.Batch
	touched map[frontKey]bool
	hairpin map[netip.Addr]bool // touched ones
	unstick []unstick
	stale   proxy.StaleFlows
}

type claim struct {
	owner  proxy.PortName
	target target
}

// unstick is an endpoint that clients may be stuck to although it has gone.
type unstick struct {
	set      string // of affinity
	front    string
	endpoint netip.AddrPort
}

var _ proxy.Backend = (*Backend)(nil)

// New connects to the kernel; it changes nothing yet.
func New(cfg Config) (*Backend, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	b := &Backend{cfg: cfg, family: nft.IPv4, lost: make(chan struct{})}
	if cfg.IPv6 {
		b.family = nft.IPv6
	}
	var err error
	if b.ns, err = netns.Current(); err != nil {
		return nil, err
	}
	if b.conn, err = nft.Open(); err != nil {
		_ = b.ns.Close()
		return nil, err
	}
	if b.track, err = conntrack.Open(); err != nil {
		_ = b.conn.Close()
		_ = b.ns.Close()
		return nil, err
	}
	b.batch = nft.NewBatch(b.family, cfg.Table)
	return b, nil
}

// Name is "nftables".
func (b *Backend) Name() string { return "nftables" }

// IPv6 says which family the backend serves.
func (b *Backend) IPv6() bool { return b.cfg.IPv6 }

// Lost is signalled when somebody removed the table.
func (b *Backend) Lost() <-chan struct{} {
	if b.watch == nil {
		return b.lost
	}
	return b.watch.Lost()
}

// Close gives up the connections; the table stays.
func (b *Backend) Close() error {
	var errs []error
	if b.watch != nil {
		errs = append(errs, b.watch.Close())
	}
	return errors.Join(append(errs, b.conn.Close(), b.track.Close(), b.ns.Close())...)
}

// Cleanup removes the table.
func (b *Backend) Cleanup() error {
	b.mirror = nil
	t := nft.NewBatch(b.family, b.cfg.Table)
	t.AddTable()
	t.RemoveTable()
	return b.conn.Commit(t)
}

// Replace takes over what the kernel holds, if it is ours and of this version,
// and changes what differs.
func (b *Backend) Replace(ctx context.Context, ports []*proxy.Port) error {
	m, ok, err := readMirror(b.conn, b.family, b.cfg.Table, b.baseComment())
	if err != nil {
		return fmt.Errorf("read service rules: %w", err)
	}
	// What could not be changed last time is not what it seemed to be.
	ok = ok && !b.distrust
	b.distrust = true
	b.mirror, b.ports = nil, map[proxy.PortName]*proxy.Port{}
	b.claims = map[frontKey][]claim{}
	b.onNode, b.users = map[netip.Addr]int{}, map[string]int{}
	b.forget()
	if !ok {
		m = newMirror()
		b.addBase(b.batch)
		if err := b.conn.Commit(b.batch); err != nil {
			return fmt.Errorf("make table %s: %w", b.cfg.Table, err)
		}
	}
	b.mirror = m
	b.keep = math.MaxInt // what is left over may still lead to chains

	updates := make([]proxy.Update, len(ports))
	for i, p := range ports {
		updates[i] = proxy.Update{Name: p.Name, Port: p}
	}
	if err := b.program(ctx, updates); err != nil {
		return err
	}
	if err := b.sweep(); err != nil {
		return err
	}
	b.distrust = false
	if b.watch == nil {
		// Only now: the kernel would have told of each element above.
		err := b.ns.Do(func() (err error) { b.watch, err = b.conn.Watch(b.family, b.cfg.Table); return err })
		if err != nil {
			b.cfg.Log.Warn("cannot watch service rules; removed ones come back with the next change", base.KeyError, err)
		}
	}
	return nil
}

// Apply carries out updates in as few transactions as their size allows.
func (b *Backend) Apply(ctx context.Context, updates []proxy.Update) error {
	if b.mirror == nil {
		return errors.New("nftables: Apply before Replace")
	}
	return b.program(ctx, updates)
}

func (b *Backend) program(ctx context.Context, updates []proxy.Update) error {
	b.forget()
	// Removals first: what they free may be wanted by others.
	slices.SortStableFunc(updates, func(x, y proxy.Update) int { return gone(y) - gone(x) })
	size := 0
	for i := range updates {
		size += b.update(updates[i])
		if size > maxBatch {
			size = 0
			if err := b.commit(); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				b.mirror = nil
				return err
			}
		}
	}
	if err := b.commit(); err != nil {
		return err
	}
	b.unstickClients()
	b.stale.Remove(b.track, b.cfg.IPv6, b.cfg.Log)
	return nil
}

func gone(u proxy.Update) int {
	if u.Port == nil {
		return 1
	}
	return 0
}

// forget empties what is collected for a transaction.
func (b *Backend) forget() {
	b.batch.Reset()
	b.touched, b.hairpin = map[frontKey]bool{}, map[netip.Addr]bool{}
	b.unstick, b.stale = nil, proxy.StaleFlows{}
}

// commit sends what was collected.
func (b *Backend) commit() error {
	for k := range b.touched {
		var want *target
		if c := b.claims[k]; len(c) > 0 {
			want = &c[0].target
		}
		b.unstick = append(b.unstick, b.mirror.setFront(b.batch, k, want)...)
	}
	for a := range b.hairpin {
		b.mirror.setHairpin(b.batch, a, b.onNode[a] > 0)
	}
	clear(b.touched)
	clear(b.hairpin)
	b.removeUnused(b.keep)
	if err := b.conn.Commit(b.batch); err != nil {
		b.mirror = nil // no longer what the kernel holds
		return fmt.Errorf("program service rules: %w", err)
	}
	return nil
}
