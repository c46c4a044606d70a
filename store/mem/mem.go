package mem

import (
	"context"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/periplus/periplus/store"
)

// A Store keeps entries in memory. Make it with New.
type Store struct {
	mu        sync.Mutex
	changed   *sync.Cond // signalled when history grows, a watch ends or the store closes; uses mu
	history   []store.Event
	current   map[string]store.Entry
	revision  int64
	compacted int64 // history up to and including this revision is gone
	closed    bool
}

var _ store.Store = (*Store)(nil)

// New returns an empty store at revision 1.
func New() *Store {
	s := &Store{current: map[string]store.Entry{}, revision: 1, compacted: 1}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// Get returns the entry of key, or store.ErrNotFound.
func (s *Store) Get(_ context.Context, key string) (store.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.current[key]
	if !ok {
		return store.Entry{}, store.ErrNotFound
	}
	return e, nil
}

// List returns the entries below prefix, in key order.
func (s *Store) List(_ context.Context, prefix string, o store.ListOptions) (store.ListResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.current
	r := store.ListResult{Revision: s.revision}
	if o.Revision > 0 && o.Revision < s.revision {
		if o.Revision < s.compacted {
			return r, store.ErrCompacted
		}
		state, r.Revision = s.atLocked(o.Revision), o.Revision
	}
	for key, e := range state {
		if strings.HasPrefix(key, prefix) && key >= o.Start {
			r.Entries = append(r.Entries, e)
		}
	}
	sort.Slice(r.Entries, func(i, j int) bool { return r.Entries[i].Key < r.Entries[j].Key })
	if n := int64(len(r.Entries)); o.Limit > 0 && n > o.Limit {
		r.Remaining = n - o.Limit
		r.Entries = r.Entries[:o.Limit]
	}
	return r, nil
}

// atLocked rebuilds the past by undoing, newest first, what came after revision.
func (s *Store) atLocked(revision int64) map[string]store.Entry {
	state := map[string]store.Entry{}
	for k, e := range s.current {
		if e.Mod <= revision {
			state[k] = e
		}
	}
	seen := map[string]bool{}
	for _, e := range slices.Backward(s.history) {
		if e.Mod > revision || seen[e.Key] {
			continue
		}
		seen[e.Key] = true
		if !e.Deleted {
			state[e.Key] = e.Entry
		}
	}
	return state
}

// Create stores a new key.
func (s *Store) Create(_ context.Context, key string, value []byte) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.current[key]; ok {
		return 0, store.ErrExists
	}
	return s.putLocked(store.Entry{Key: key, Value: value, Create: s.revision + 1}), nil
}

// Update replaces a value if the key is still at revision mod.
func (s *Store) Update(_ context.Context, key string, value []byte, mod int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.current[key]
	if !ok || e.Mod != mod {
		return 0, conflict(key, e)
	}
	return s.putLocked(store.Entry{Key: key, Value: value, Create: e.Create}), nil
}

// Delete removes a key if it is still at revision mod.
func (s *Store) Delete(_ context.Context, key string, mod int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.current[key]
	if !ok || e.Mod != mod {
		return 0, conflict(key, e)
	}
	s.revision++
	s.deleteLocked(key)
	return s.revision, nil
}

// Commit does all ops or none.
func (s *Store) Commit(_ context.Context, ops ...store.Op) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range ops {
		if e := s.current[op.Key]; op.Mod != store.Any && e.Mod != op.Mod {
			return 0, conflict(op.Key, e)
		}
	}
	s.revision++
	for _, op := range ops {
		e, there := s.current[op.Key]
		switch {
		case op.Value == nil && there:
			s.deleteLocked(op.Key)
		case op.Value != nil && there:
			s.setLocked(store.Entry{Key: op.Key, Value: op.Value, Create: e.Create})
		case op.Value != nil:
			s.setLocked(store.Entry{Key: op.Key, Value: op.Value, Create: s.revision})
		}
	}
	return s.revision, nil
}

func conflict(key string, e store.Entry) error {
	e.Key = key
	return &store.ConflictError{Current: e}
}

func (s *Store) putLocked(e store.Entry) int64 {
	s.revision++
	s.setLocked(e)
	return s.revision
}

// setLocked and deleteLocked are changes of the current revision.
func (s *Store) setLocked(e store.Entry) {
	e.Mod = s.revision
	s.current[e.Key] = e
	s.history = append(s.history, store.Event{Entry: e})
	s.changed.Broadcast()
}

func (s *Store) deleteLocked(key string) {
	delete(s.current, key)
	s.history = append(s.history, store.Event{Entry: store.Entry{Key: key, Mod: s.revision}, Deleted: true})
	s.changed.Broadcast()
}

// sinceLocked returns the changes after a revision that is not compacted.
func (s *Store) sinceLocked(revision int64) []store.Event {
	first := sort.Search(len(s.history), func(i int) bool { return s.history[i].Mod > revision })
	return s.history[first:]
}

// Watch delivers the changes below prefix after revision after.
func (s *Store) Watch(ctx context.Context, prefix string, after int64, handle func([]store.Event, int64)) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	handle(nil, after)
	for {
		s.mu.Lock()
		for ctx.Err() == nil && !s.closed && s.revision <= after {
			s.changed.Wait()
		}
		if ctx.Err() != nil || s.closed {
			s.mu.Unlock()
			return nil
		}
		if after < s.compacted {
			s.mu.Unlock()
			return store.ErrCompacted
		}
		news := s.sinceLocked(after)
		after = s.revision
		s.mu.Unlock()
		for len(news) > 0 {
			n := 1
			for n < len(news) && news[n].Mod == news[0].Mod {
				n++
			}
			if wanted := below(prefix, news[:n:n]); len(wanted) > 0 {
				handle(wanted, news[0].Mod)
			}
			news = news[n:]
		}
		handle(nil, after)
	}
}

// below returns the events of keys that begin with prefix.
func below(prefix string, events []store.Event) []store.Event {
	other := func(e store.Event) bool { return !strings.HasPrefix(e.Key, prefix) }
	if !slices.ContainsFunc(events, other) {
		return events
	}
	return slices.DeleteFunc(slices.Clone(events), other)
}

// Revision returns the current revision.
func (s *Store) Revision(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision, nil
}

// Compact forgets history up to revision.
func (s *Store) Compact(_ context.Context, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision <= s.compacted {
		return store.ErrCompacted
	}
	revision = min(revision, s.revision)
	s.history = append([]store.Event(nil), s.sinceLocked(revision)...)
	s.compacted = revision
	return nil
}

// Close ends all watches.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
	return nil
}
