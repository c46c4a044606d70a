package cacher

import "time"

// How much of the past a ring holds. Changes are kept for ringAge, as upstream keeps
// them: longer than the minute after which a watcher that asks for bookmarks learns of
// a newer revision, so that one that is cut off can go on. The newest ringFloor are
// kept however old they are. Decoded, with their predecessors and encodings, changes
// take many times their stored size, so that a burst is bounded by its bytes, too:
// who is further behind than that lists again.
const (
	ringAge   = 75 * time.Second
	ringFloor = 100
	ringMax   = 16384
	ringBytes = 12 << 20 // as stored
	ringMin   = 16       // slots
)

// A ring is the newest changes of a resource.
type ring struct {
	slots []slot // a power of two
	head  int    // index of the oldest
	count int
	tail  int64 // number of the next change
	bytes int   // of the new states, as stored

	grown, shrunk int // how often there were more slots than before, and fewer
}

type slot struct {
	Event
	at time.Time // when it came
}

// first is the number of the oldest change.
func (r *ring) first() int64 { return r.tail - int64(r.count) }

// at returns change number n, which must be in the ring.
func (r *ring) at(n int64) *Event { return &r.slots[r.index(int(n-r.first()))].Event }

func (r *ring) index(i int) int { return (r.head + i) & (len(r.slots) - 1) }

// push appends a change, and lets those go that are too many. What went is up to the
// revision that it returns; 0 if nothing had to.
func (r *ring) push(e Event, now time.Time) (gone int64) {
	if r.count == len(r.slots) {
		gone = r.trim(now)
	}
	if r.count == len(r.slots) {
		if r.count == ringMax {
			gone = r.drop()
		} else {
			r.resize(max(ringMin, 2*r.count))
		}
	}
	r.slots[r.index(r.count)] = slot{e, now}
	r.count++
	r.tail++
	r.bytes += len(e.Object.stored)
	for r.bytes > ringBytes && r.count > ringFloor {
		gone = r.drop()
	}
	return gone
}

// trim lets go of what is too old; the result is as that of push.
func (r *ring) trim(now time.Time) (gone int64) {
	for r.count > ringFloor && now.Sub(r.slots[r.head].at) >= ringAge {
		gone = r.drop()
	}
	if n := len(r.slots); n > 2*ringFloor && r.count <= n/4 {
		for n > 2*ringFloor && r.count <= n/4 {
			n /= 2
		}
		r.resize(n)
	}
	return gone
}

// due is how long the oldest change beyond the floor may still stay; ok is false if
// there is none.
func (r *ring) due(now time.Time) (d time.Duration, ok bool) {
	if r.count <= ringFloor {
		return 0, false
	}
	return ringAge - now.Sub(r.slots[r.head].at), true
}

// drop lets the oldest change go and returns its revision.
func (r *ring) drop() int64 {
	s := &r.slots[r.head]
	rev := s.Object.Rev
	r.bytes -= len(s.Object.stored)
	s.Object.left.Store(nil)
	*s = slot{}
	r.head = r.index(1)
	r.count--
	return rev
}

func (r *ring) resize(n int) {
	slots := make([]slot, n)
	for i := range r.count {
		slots[i] = r.slots[r.index(i)]
	}
	if n > len(r.slots) {
		r.grown++
	} else {
		r.shrunk++
	}
	r.slots, r.head = slots, 0
}

// clear lets all changes go; their numbers are not used again.
func (r *ring) clear() { *r = ring{tail: r.tail, grown: r.grown, shrunk: r.shrunk} }
