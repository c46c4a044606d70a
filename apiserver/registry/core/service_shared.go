package core

import (
	"slices"
	"time"
)

// seenWithin is when what a write has taken is surely in the watch cache.
const seenWithin = 10 * time.Second

// outstanding are what writes have taken that the watch cache may not show yet.
type outstanding map[*lease]time.Time

// began, ended follow one write.
func (o outstanding) began(l *lease) { o[l] = time.Time{} }

func (o outstanding) ended(l *lease, stored bool) {
	if !stored {
		delete(o, l)
		return
	}
	o[l] = time.Now().Add(seenWithin)
}

// current drops what is old and returns the rest.
func (o outstanding) current() []*lease {
	var out []*lease
	for l, until := range o {
		if !until.IsZero() && time.Now().After(until) {
			delete(o, l)
			continue
		}
		out = append(out, l)
	}
	return out
}

// reloadLocked begins with empty pools when ranges have come or gone, and when other
// API servers write too: what they took and gave back is in the watch cache only.
func (a *serviceAllocator) reloadLocked() {
	now := a.prefixes()
	if !a.env.Shared && slices.Equal(now, a.now) {
		return
	}
	a.loaded = false
	a.setRangesLocked(now)
	low, high := a.env.NodePortLow, a.env.NodePortHigh
	if high == 0 {
		low, high = 30000, 32767
	}
	a.ports = newPortPool(low, high)
	for _, l := range a.pending.current() {
		for _, ip := range l.takenIPs {
			if pool := a.ips[family(ip)]; pool != nil {
				_ = pool.take(ip)
			}
		}
		for _, port := range l.takenPorts {
			_ = a.ports.take(port)
		}
	}
}
