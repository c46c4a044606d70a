package cacher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/store"
)

// Root is the path in the store below which all resources are kept.
const Root = "/registry/"

// A Set is the caches of all resources, fed by one watch of the store, so that
// one revision holds for all of them.
type Set struct {
	store store.Store
	log   *slog.Logger
	kept  kept

	mu     sync.Mutex
	caches map[string]*Cache // by prefix below Root, without slashes at the ends
	loaded bool
	buffer map[*Cache][]store.Event // changes kept back for caches that are loading

	// at is read without the lock, which is held while changes are applied. It is
	// written with the lock.
	at atomic.Pointer[progress]

	following     chan struct{} // closed when the store is followed
	followingOnce sync.Once
}

// progress is how far the caches are.
type progress struct {
	rev     int64         // every cache has all changes up to it
	changed chan struct{} // closed when there is a newer one
}

// NewSet returns a set without caches over s.
func NewSet(s store.Store, log *slog.Logger) *Set {
	out := &Set{store: s, log: log, caches: map[string]*Cache{}, buffer: map[*Cache][]store.Event{}, following: make(chan struct{})}
	out.at.Store(&progress{changed: make(chan struct{})})
	return out
}

// Add makes the cache of a resource. Before Run it is filled by Run; afterwards
// it is filled before Add returns.
func (s *Set) Add(ctx context.Context, prefix string, codec Codec) (*Cache, error) {
	c := newCache(Root+prefix+"/", codec, s.log, &s.kept)
	s.mu.Lock()
	if _, taken := s.caches[prefix]; taken {
		s.mu.Unlock()
		return nil, fmt.Errorf("resource path %q is already cached", prefix)
	}
	s.caches[prefix] = c
	if !s.loaded {
		s.mu.Unlock()
		return c, nil
	}
	s.buffer[c] = []store.Event{}
	s.mu.Unlock()

	if err := s.fill(ctx, c, func([]store.Event) { delete(s.caches, prefix) }); err != nil {
		return nil, err
	}
	return c, nil
}

// Remove forgets a resource; its watches end after what they have not seen yet.
func (s *Set) Remove(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.caches[prefix]; c != nil {
		delete(s.caches, prefix)
		c.close()
	}
}

// Recode decodes the objects of a resource anew, with another codec. Watches go on.
func (s *Set) Recode(prefix string, codec Codec) {
	s.mu.Lock()
	c := s.caches[prefix]
	s.mu.Unlock()
	if c == nil {
		return
	}
	// Most of the work is done before the store's changes are kept waiting.
	fresh := map[*Object]*Object{}
	c.Snapshot().Each("", "", func(o *Object) bool {
		if again, err := recode(o, codec); err == nil {
			fresh[o] = again
		}
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	c.recode(codec, fresh)
}

// Load fills all caches. Run calls it; call it before to know when it is done.
func (s *Set) Load(ctx context.Context) error {
	list, err := s.store.List(ctx, Root, store.ListOptions{})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	byCache := map[*Cache][]store.Entry{}
	for _, e := range list.Entries {
		if c := s.findLocked(e.Key); c != nil {
			byCache[c] = append(byCache[c], e)
		}
	}
	for _, c := range s.caches {
		c.reload(byCache[c], list.Revision)
	}
	s.loaded = true
	s.advanceLocked(list.Revision)
	return nil
}

// Following is closed when Run has begun to follow the store: what is written
// from then on is seen at once.
func (s *Set) Following() <-chan struct{} { return s.following }

// Run follows the store until ctx ends. When the store's history is lost or the
// connection breaks it loads again; watches then end and clients list anew.
func (s *Set) Run(ctx context.Context) error {
	retry := time.Duration(0)
	for ctx.Err() == nil {
		s.mu.Lock()
		loaded, from := s.loaded, s.Rev()
		s.mu.Unlock()
		var err error
		if !loaded {
			err = s.Load(ctx)
		}
		if err == nil {
			err = s.store.Watch(ctx, "", max(from, s.Rev()), func(events []store.Event, rev int64) {
				retry = 0
				s.followingOnce.Do(func() { close(s.following) })
				s.apply(events, rev)
			})
		}
		if ctx.Err() != nil {
			return nil
		}
		s.log.Warn("watch of the store broke", base.KeyError, err, base.KeyRevision, from)
		if errors.Is(err, store.ErrCompacted) {
			s.mu.Lock()
			s.loaded = false
			s.mu.Unlock()
		}
		retry = min(max(2*retry, 50*time.Millisecond), 5*time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
	return nil
}

func (s *Set) apply(events []store.Event, rev int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(events) > 0 {
		c := s.findLocked(events[0].Key)
		n := 1
		for n < len(events) && s.findLocked(events[n].Key) == c {
			n++
		}
		if c != nil {
			if kept, loading := s.buffer[c]; loading {
				s.buffer[c] = append(kept, events[:n]...)
			} else {
				c.apply(events[:n], rev)
			}
		}
		events = events[n:]
	}
	s.advanceLocked(rev)
}

func (s *Set) advanceLocked(rev int64) {
	before := s.at.Load()
	if rev <= before.rev {
		return
	}
	s.at.Store(&progress{rev, make(chan struct{})})
	close(before.changed)
}

// findLocked returns the cache that key belongs to: its path has one to three
// segments ("pods", "services/specs", "example.com/widgets").
func (s *Set) findLocked(key string) *Cache {
	path, ok := strings.CutPrefix(key, Root)
	if !ok {
		return nil
	}
	end := 0
	for range 3 {
		i := strings.IndexByte(path[end:], '/')
		if i < 0 {
			return nil
		}
		end += i
		if c := s.caches[path[:end]]; c != nil {
			return c
		}
		end++
	}
	return nil
}

// Rev is the revision up to which every cache has all changes.
func (s *Set) Rev() int64 { return s.at.Load().rev }

// Wait blocks until every cache has all changes up to rev.
func (s *Set) Wait(ctx context.Context, rev int64) error {
	for {
		now := s.at.Load()
		if now.rev >= rev {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-now.changed:
		}
	}
}

// Sync blocks until the caches are as new as the store is at the time of the call.
func (s *Set) Sync(ctx context.Context) error {
	rev, err := s.store.Revision(ctx)
	if err != nil {
		return err
	}
	return s.Wait(ctx, rev)
}

// Advanced returns the present revision and a channel closed when it grows.
func (s *Set) Advanced() (int64, <-chan struct{}) {
	now := s.at.Load()
	return now.rev, now.changed
}
