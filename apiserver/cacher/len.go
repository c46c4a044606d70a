package cacher

// Len returns the number of objects.
func (c *Cache) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tree.Len()
}

// Size returns the number of objects, and their bytes as they are stored.
func (c *Cache) Size() (objects, bytes int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tree.Len(), c.size
}
