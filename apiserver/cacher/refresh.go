package cacher

import (
	"context"
	"fmt"

	"github.com/periplus/periplus/store"
)

// Refresh fills the cache that a key belongs to anew: what lies in the store can be read
// now that could not be before. Its watches end, and clients list again.
func (s *Set) Refresh(ctx context.Context, key string) error {
	s.mu.Lock()
	c := s.findLocked(key)
	if _, loading := s.buffer[c]; c == nil || !s.loaded || loading {
		s.mu.Unlock()
		return nil
	}
	s.buffer[c] = []store.Event{}
	s.mu.Unlock()

	return s.fill(ctx, c, func(late []store.Event) {
		// What came meanwhile is applied to what was there.
		for _, e := range late {
			c.apply([]store.Event{e}, e.Mod)
		}
	})
}

// fill reads all that is stored for a cache, whose events are buffered meanwhile. If that
// fails, failed gets them, with s.mu held.
func (s *Set) fill(ctx context.Context, c *Cache, failed func(late []store.Event)) error {
	list, err := s.store.List(ctx, c.prefix, store.ListOptions{})
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.buffer[c]
	delete(s.buffer, c)
	if err != nil {
		failed(late)
		return fmt.Errorf("load %s: %w", c.prefix, err)
	}
	c.reload(list.Entries, list.Revision)
	for _, e := range late {
		if e.Mod > list.Revision {
			c.apply([]store.Event{e}, e.Mod)
		}
	}
	c.advance(s.Rev())
	return nil
}
