package cacher

import "context"

// A Watch is a position in a cache's log of changes.
type Watch struct {
	c    *Cache
	next int64 // number of the next change
	gen  int
	rev  int64 // all changes up to it have been returned
}

// Watch returns a watch of the changes after rev, or ErrTooOld.
func (c *Cache) Watch(rev int64) (*Watch, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n, err := c.positionLocked(rev)
	if err != nil {
		return nil, err
	}
	return &Watch{c, n, c.gen, rev}, nil
}

// SnapshotAndWatch returns the present and a watch of what comes after it.
func (c *Cache) SnapshotAndWatch() (Snapshot, *Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Snapshot{c.tree.Clone(), c.rev}, &Watch{c, c.ring.tail, c.gen, c.rev}
}

// Next appends the next changes to buf, at most its capacity (at least one),
// waiting for the first. It returns ErrTooOld when the watch fell behind,
// ErrEnded when the cache was reloaded, or ctx's error.
func (w *Watch) Next(ctx context.Context, buf []Event) ([]Event, error) {
	for {
		events, wait, err := w.Poll(buf)
		if err != nil || len(events) > len(buf) {
			return events, err
		}
		select {
		case <-ctx.Done():
			return buf, ctx.Err()
		case <-wait:
		}
	}
}

// Poll is Next without waiting: when there is nothing new it returns buf and a
// channel that is closed with the next change.
func (w *Watch) Poll(buf []Event) ([]Event, <-chan struct{}, error) {
	c := w.c
	c.mu.RLock()
	defer c.mu.RUnlock()
	if w.gen != c.gen {
		return buf, nil, ErrEnded
	}
	if w.next < c.ring.first() {
		return buf, nil, ErrTooOld
	}
	if w.next == c.ring.tail && c.closed {
		return buf, nil, ErrGone
	}
	if w.next == c.ring.tail {
		w.rev = max(w.rev, c.rev)
		return buf, c.changed, nil
	}
	room := max(1, cap(buf)-len(buf))
	for ; w.next < c.ring.tail && room > 0; room-- {
		e := *c.ring.at(w.next)
		buf = append(buf, e)
		w.rev = max(w.rev, e.Object.Rev)
		w.next++
	}
	return buf, nil, nil
}

// Rev is the revision up to which all changes have been returned.
func (w *Watch) Rev() int64 { return w.rev }
