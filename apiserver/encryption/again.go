package encryption

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// againPause is the least time between two tries to read what could not be read.
	againPause = time.Second
	// againTime is how long a try may take.
	againTime = 3 * time.Second
)

// again tries to read an entry once more, which could not be read: a key may be back, or
// its service answer. If it can be, everything is read again. It reports whether it can.
func (s *Store) again(key string) bool {
	s.mu.Lock()
	if time.Since(s.tried) < againPause {
		s.mu.Unlock()
		return false
	}
	s.tried = time.Now()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), againTime)
	defer cancel()
	e, err := s.Store.Get(ctx, key)
	if err == nil {
		_, err = s.open(ctx, &e)
	}
	if err != nil {
		return false
	}
	s.readAgain()
	return true
}

// readAgain lets whoever holds copies read what could not be read.
func (s *Store) readAgain() {
	s.mu.Lock()
	keys := slices.Sorted(maps.Keys(s.unreadable))
	s.mu.Unlock()
	if len(keys) > 0 && s.config.Again != nil {
		s.config.Again(keys)
	}
}
