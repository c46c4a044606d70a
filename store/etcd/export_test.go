package etcd

import "time"

// Flush writes to the database file what is still in memory.
func (s *Store) Flush() { s.space.server.Server.Backend().ForceCommit() }

// EndPause lets the next write try to make room, however short ago another one has.
func (s *Store) EndPause() {
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	s.space.rest = time.Time{}
}
