package cacher

// Scan calls visit for the objects whose keys begin with prefix, in key order, until it
// returns false. Unlike a Snapshot's Each it makes no copy, and changes wait for it to
// end: visit only notes what it sees.
func (c *Cache) Scan(prefix string, visit func(*Object) bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.tree.Len() == 0 {
		return
	}
	c.tree.AscendGreaterOrEqual(&Object{Key: prefix}, func(o *Object) bool {
		return len(o.Key) >= len(prefix) && o.Key[:len(prefix)] == prefix && visit(o)
	})
}
