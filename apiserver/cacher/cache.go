package cacher

import (
	"bytes"
	"log/slog"
	goruntime "runtime"
	"runtime/debug"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/store"
)

const (
	// ringPause is the least time between two looks at what has become too old.
	ringPause = 5 * time.Second
	// burst is how much, as stored, must have become too old for memory to be given
	// back once all is quiet again.
	burst = 2 << 20
)

// An Event is one change of one object.
type Event struct {
	Object  *Object // the new state; for a deletion the last state under the deletion's revision
	Prev    *Object // the state before, nil for a creation
	Deleted bool
}

// Left returns the state before under the revision of the change: what those see whose
// selector no longer matches. It is made once.
func (e *Event) Left() *Object {
	if o := e.Object.left.Load(); o != nil {
		return o
	}
	o := e.Prev.Gone(e.Object.Rev)
	if !e.Object.left.CompareAndSwap(nil, o) {
		return e.Object.left.Load()
	}
	return o
}

// A Cache holds the objects of one resource.
type Cache struct {
	prefix string // with a trailing slash
	codec  Codec
	log    *slog.Logger
	kept   *kept

	mu      sync.RWMutex
	tree    *btree.BTreeG[*Object]
	ring    ring          // the newest changes
	aging   bool          // a timer is set for changes that become too old
	aged    int           // bytes, as stored, that have become too old since it was first set
	low     int64         // changes after this revision are in the ring
	rev     int64         // all changes up to this revision are applied
	gen     int           // raised by a reload: watches of an older generation end
	closed  bool          // the resource is gone: watches end after the last change
	size    int           // bytes of the objects, as stored
	loads   int           // how often the objects were read from the store
	loaded  int           // how many, in all
	changed chan struct{} // closed and replaced when something above changed

	undecodable atomic.Int64 // stored objects that could not be read

	pendingMu sync.Mutex
	pending   map[string][]*Pending // announced writes by key
}

func byKey(a, b *Object) bool { return a.Key < b.Key }

func newCache(prefix string, codec Codec, log *slog.Logger, kept *kept) *Cache {
	return &Cache{
		prefix: prefix, codec: codec, log: log, kept: kept,
		tree: btree.NewG(32, byKey), changed: make(chan struct{}),
		pending: map[string][]*Pending{},
	}
}

// Get returns the object stored under key, or nil.
func (c *Cache) Get(key string) *Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	o, _ := c.tree.Get(&Object{Key: key})
	return o
}

// Version returns a number that grows with every change of the objects.
func (c *Cache) Version() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ring.tail + int64(c.gen)
}

// A Snapshot is the cache at one revision. It stays as it is.
type Snapshot struct {
	tree *btree.BTreeG[*Object]
	Rev  int64
}

// Snapshot returns the objects as they are now.
func (c *Cache) Snapshot() Snapshot {
	// Clone marks the shared nodes as copy-on-write, so it needs the write lock.
	c.mu.Lock()
	defer c.mu.Unlock()
	return Snapshot{c.tree.Clone(), c.rev}
}

// Len returns the number of objects.
func (s Snapshot) Len() int { return s.tree.Len() }

// Each calls visit for the objects whose keys begin with prefix, from key start
// on, in key order, until it returns false.
func (s Snapshot) Each(prefix, start string, visit func(*Object) bool) {
	if start < prefix {
		start = prefix
	}
	s.tree.AscendGreaterOrEqual(&Object{Key: start}, func(o *Object) bool {
		if len(o.Key) < len(prefix) || o.Key[:len(prefix)] != prefix {
			return false
		}
		return visit(o)
	})
}

// A Pending is a write that was announced and not yet seen.
type Pending struct {
	value []byte
	obj   runtime.Object
	done  chan *Object
	// twins are others of the same value: of those who try to write it at the same time
	// one succeeds, and which one the event does not say. All are told.
	twins []*Pending
}

// deliver tells the writer, and his twins.
func (p *Pending) deliver(o *Object) {
	p.done <- o
	for _, t := range p.twins {
		t.done <- o
	}
}

// Expect announces that value, which obj encodes to, is about to be stored under
// key. The caller no longer modifies obj. It calls Forget when the write failed.
func (c *Cache) Expect(key string, value []byte, obj runtime.Object) *Pending {
	p := &Pending{value: value, obj: obj, done: make(chan *Object, 1)}
	c.pendingMu.Lock()
	c.pending[key] = append(c.pending[key], p)
	c.pendingMu.Unlock()
	return p
}

// Done delivers the cached object when the write has been seen.
func (p *Pending) Done() <-chan *Object { return p.done }

// Forget withdraws an announcement.
func (c *Cache) Forget(key string, p *Pending) { c.take(key, func(q *Pending) bool { return q == p }) }

// take removes the announcements of a key that match and returns the first, with the
// others as its twins.

func (c *Cache) take(key string, match func(*Pending) bool) *Pending {
	c.pendingMu.Lock()
	defer c.pendingMu.Unlock()
	list := c.pending[key]
	if len(list) == 1 && match(list[0]) { // the usual case
		delete(c.pending, key)
		return list[0]
	}
	var first *Pending
	var left []*Pending
	for _, p := range list {
		switch {
		case !match(p):
			left = append(left, p)
		case first == nil:
			first = p
		default:
			first.twins = append(first.twins, p)
		}
	}
	switch {
	case first == nil:
	case len(left) == 0:
		delete(c.pending, key)
	default:
		c.pending[key] = left
	}
	return first
}

// decode returns the entry's object, by preference the writer's own.
func (c *Cache) decode(e store.Entry) (*Object, *Pending) {
	p := c.take(e.Key, func(p *Pending) bool { return bytes.Equal(p.value, e.Value) })
	obj := runtime.Object(nil)
	if p != nil {
		obj = p.obj
	} else {
		var err error
		if obj, err = c.codec.Decode(e.Value); err != nil {
			c.undecodable.Add(1)
			c.log.Error("stored object cannot be decoded", base.KeyKey, e.Key, base.KeyRevision, e.Mod, base.KeyError, err)
			return nil, nil
		}
	}
	o, err := newObject(e, obj)
	if err != nil {
		c.log.Error("stored object cannot be used", base.KeyKey, e.Key, base.KeyError, err)
		return nil, p
	}
	o.kept = c.kept
	return o, p
}

// decoded is an entry's object, and the write that it is of, if that was announced.
type decoded struct {
	o *Object
	p *Pending
}

// decodeBatch is how many entries are worth a goroutine.
const decodeBatch = 128

// decodeAll decodes entries on all processors: it is most of a start.
func (c *Cache) decodeAll(entries []store.Entry) []decoded {
	out := make([]decoded, len(entries))
	var next atomic.Int64
	work := func() {
		for {
			end := int(next.Add(decodeBatch))
			if end-decodeBatch >= len(entries) {
				return
			}
			for i := end - decodeBatch; i < min(end, len(entries)); i++ {
				out[i].o, out[i].p = c.decode(entries[i])
			}
		}
	}
	var all sync.WaitGroup
	for range min(goruntime.GOMAXPROCS(0)-1, len(entries)/decodeBatch) {
		all.Go(work)
	}
	work()
	all.Wait()
	return out
}

// Decode returns the object of an entry that was read from the store's past.
func (c *Cache) Decode(e store.Entry) (*Object, error) {
	obj, err := c.codec.Decode(e.Value)
	if err != nil {
		return nil, err
	}
	return newObject(e, obj)
}

// apply brings in the changes of one revision.
func (c *Cache) apply(events []store.Event, rev int64) {
	news := make([]decoded, len(events))
	for i, e := range events {
		if !e.Deleted {
			news[i].o, news[i].p = c.decode(e.Entry)
		}
	}
	c.mu.Lock()
	now := time.Now()
	for i, e := range events {
		if e.Deleted {
			if prev, ok := c.tree.Delete(&Object{Key: e.Key}); ok {
				c.size -= len(prev.stored)
				c.pushLocked(Event{Object: prev.Gone(e.Mod), Prev: prev, Deleted: true}, now)
			}
		} else if o := news[i].o; o != nil {
			prev, there := c.tree.ReplaceOrInsert(o)
			c.size += len(o.stored)
			if there {
				c.size -= len(prev.stored)
			}
			c.pushLocked(Event{Object: o, Prev: prev}, now)
		}
	}
	c.ageLocked(now)
	c.rev = rev
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	for _, n := range news {
		if n.p != nil {
			n.p.deliver(n.o)
		}
	}
}

// advance notes that nothing else changed up to rev.
func (c *Cache) advance(rev int64) {
	c.mu.Lock()
	c.rev = max(c.rev, rev)
	c.mu.Unlock()
}

// pushLocked appends to the ring.
func (c *Cache) pushLocked(e Event, now time.Time) {
	if gone := c.ring.push(e, now); gone != 0 {
		c.low = gone
	}
}

// ageLocked sets a timer for changes that become too old while nothing new comes. A
// ring that holds little needs none, so that an idle server sleeps.
func (c *Cache) ageLocked(now time.Time) {
	if d, ok := c.ring.due(now); ok && !c.aging {
		c.aging = true
		time.AfterFunc(max(d, ringPause), c.age)
	}
}

// age lets go of changes that are too old.
func (c *Cache) age() {
	c.mu.Lock()
	before, now := c.ring.bytes, time.Now()
	if gone := c.ring.trim(now); gone != 0 {
		c.low = gone
	}
	c.aged += before - c.ring.bytes
	c.aging = false
	c.ageLocked(now)
	over := !c.aging && c.aged >= burst
	if !c.aging {
		c.aged = 0
	}
	c.mu.Unlock()
	if over {
		debug.FreeOSMemory() // else it takes minutes until the garbage of a burst is collected
	}
}

// positionLocked returns the number of the first change after rev.
func (c *Cache) positionLocked(rev int64) (int64, error) {
	if rev < c.low {
		return 0, ErrTooOld
	}
	first := c.ring.first()
	i := sort.Search(c.ring.count, func(i int) bool { return c.ring.at(first+int64(i)).Object.Rev > rev })
	return first + int64(i), nil
}

// reload replaces everything by entries read at rev; watches end.
func (c *Cache) reload(entries []store.Entry, rev int64) {
	tree, size := btree.NewG(32, byKey), 0
	for _, d := range c.decodeAll(entries) {
		if d.o != nil {
			tree.ReplaceOrInsert(d.o)
			size += len(d.o.stored)
		}
		if d.p != nil {
			d.p.deliver(d.o)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tree, c.size = tree, size
	c.loads++
	c.loaded += tree.Len()
	c.ring.clear()
	c.low, c.rev = rev, rev
	c.gen++
	close(c.changed)
	c.changed = make(chan struct{})
}

func recode(o *Object, codec Codec) (*Object, error) {
	obj, err := codec.Decode(o.stored)
	if err != nil {
		return nil, err
	}
	again, err := newObject(store.Entry{Key: o.Key, Value: o.stored, Mod: o.Rev}, obj)
	if err == nil {
		again.kept = o.kept
	}
	return again, err
}

// recode replaces all objects by what codec makes of them; fresh holds those that
// are done already. Nothing is applied meanwhile.
func (c *Cache) recode(codec Codec, fresh map[*Object]*Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codec = codec
	tree := btree.NewG(32, byKey)
	c.tree.Ascend(func(o *Object) bool {
		again := fresh[o]
		if again == nil {
			var err error
			if again, err = recode(o, codec); err != nil {
				c.log.Error("stored object cannot be decoded by its new schema", base.KeyKey, o.Key, base.KeyError, err)
				again = o
			}
		}
		tree.ReplaceOrInsert(again)
		return true
	})
	c.tree = tree
}

// close ends the watches once they have seen the last change.
func (c *Cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	close(c.changed)
	c.changed = make(chan struct{})
}
