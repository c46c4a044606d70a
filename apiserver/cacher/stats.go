package cacher

// Stats are figures of a cache since the server began.
type Stats struct {
	Objects     int
	Bytes       int   // of the objects as they are stored
	Rev         int64 // all changes up to it are applied
	Loads       int   // how often it was filled
	Loaded      int   // objects that were there then
	Events      int64 // changes
	Capacity    int   // changes that are kept without more memory
	Grown       int   // how often the capacity was raised
	Shrunk      int   // and lowered
	Undecodable int64 // stored objects that could not be read
}

// Stats returns the present figures.
func (c *Cache) Stats() Stats {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return Stats{
		Objects: c.tree.Len(), Bytes: c.size, Rev: c.rev, Loads: c.loads, Loaded: c.loaded, Events: c.ring.tail, Capacity: len(c.ring.slots),
		Grown: c.ring.grown, Shrunk: c.ring.shrunk, Undecodable: c.undecodable.Load(),
	}
}
