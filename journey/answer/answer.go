package answer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/nflog"
	"github.com/periplus/periplus/linux/nft"
)

// Config says whom to tell.
type Config struct {
	// OnAnswer is called once for each watched address, from one goroutine; it
	// must not block.
	OnAnswer func(ip netip.Addr, at time.Time)
	// Group is the NFLOG group; default 4242.
	Group uint16
	// Table is the name of the nftables tables; default "periplus-answer".
	Table string
	// Log; default slog.Default().
	Log *slog.Logger
}

// A Watcher watches addresses in the network namespace of the thread that made it.
type Watcher struct {
	cfg    Config
	conn   *nft.Conn
	reader *nflog.Reader // nil: nobody can tell

	mu      sync.Mutex // guards watched and changes in the kernel
	watched map[nft.Family]map[netip.Addr]bool
}

// New makes a watcher. On a kernel that cannot log packets it says so once and
// tells nothing.
func New(cfg Config) (*Watcher, error) {
	if cfg.OnAnswer == nil {
		return nil, errors.New("answer: OnAnswer: is missing")
	}
	if cfg.Group == 0 {
		cfg.Group = 4242
	}
	if cfg.Table == "" {
		cfg.Table = "periplus-answer"
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	w := &Watcher{cfg: cfg, watched: map[nft.Family]map[netip.Addr]bool{nft.IPv4: {}, nft.IPv6: {}}}
	var err error
	if w.conn, err = nft.Open(); err != nil {
		return nil, err
	}
	if w.reader, err = nflog.Open(cfg.Group, 40); err != nil { // 40: both headers' addresses
		w.reader = nil
		cfg.Log.Warn("journeys end without the first answer", base.KeyError, err)
		return w, nil
	}
	// What an earlier process left would log to nobody.
	if err := w.Cleanup(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close gives up the connections.
func (w *Watcher) Close() error {
	err := w.conn.Close()
	if w.reader != nil {
		err = errors.Join(err, w.reader.Close())
	}
	return err
}

// Run calls OnAnswer until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	if w.reader == nil {
		<-ctx.Done()
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = w.reader.Close() })
	defer stop()
	err := w.reader.Read(w.packet)
	if ctx.Err() != nil {
		return errors.Join(w.Cleanup(), w.conn.Close())
	}
	return err
}

// packet handles the header of a logged packet.
func (w *Watcher) packet(p nflog.Packet) {
	src, ok := source(p.Payload)
	if ok && w.forget(src) {
		w.cfg.OnAnswer(src, p.At)
	}
}

// source is a packet's source address.
func source(b []byte) (netip.Addr, bool) {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case len(b) >= 40 && b[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(b[8:24])), true
	default:
		return netip.Addr{}, false
	}
}

func familyOf(ip netip.Addr) nft.Family {
	if ip.Is6() {
		return nft.IPv6
	}
	return nft.IPv4
}

// Watch waits for the first answer of an address from now on.
func (w *Watcher) Watch(ip netip.Addr) error {
	ip = ip.Unmap()
	if w.reader == nil || !ip.IsValid() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := familyOf(ip)
	if w.watched[f][ip] {
		return nil
	}
	b := nft.NewBatch(f, w.cfg.Table)
	if len(w.watched[f]) == 0 {
		w.addTable(b, f)
	}
	b.AddElement(setWatched, ip.AsSlice(), nil)
	if err := w.conn.Commit(b); err != nil {
		return fmt.Errorf("watch %s for its first answer: %w", ip, err)
	}
	w.watched[f][ip] = true
	return nil
}

// Unwatch forgets an address: its pod has gone.
func (w *Watcher) Unwatch(ip netip.Addr) { w.forget(ip.Unmap()) }

// forget takes an address out; it says whether it was in.
func (w *Watcher) forget(ip netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := familyOf(ip)
	if !w.watched[f][ip] {
		return false
	}
	delete(w.watched[f], ip)
	b := nft.NewBatch(f, w.cfg.Table)
	if len(w.watched[f]) == 0 {
		b.AddTable()
		b.RemoveTable()
	} else {
		b.RemoveElement(setWatched, ip.AsSlice())
	}
	// The kernel mostly took the element out itself.
	if err := w.conn.Commit(b); err != nil && !errors.Is(err, nft.ErrNotFound) {
		w.cfg.Log.Warn("cannot stop to watch an address", base.KeyAddress, ip.String(), base.KeyError, err)
	}
	return true
}

// Cleanup removes the tables.
func (w *Watcher) Cleanup() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for f := range w.watched {
		clear(w.watched[f])
		b := nft.NewBatch(f, w.cfg.Table)
		b.AddTable()
		b.RemoveTable()
		errs = append(errs, w.conn.Commit(b))
	}
	return errors.Join(errs...)
}
