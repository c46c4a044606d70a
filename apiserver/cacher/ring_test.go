package cacher

import (
	"testing"
	"time"
)

// TestRing pushes changes of a size at a pace and looks for what is held.
func TestRing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size, pushes int
		pace         time.Duration
		held         int
	}{
		"few":               {100, 10, 0, 10},
		"few, slowly":       {100, 90, time.Hour, 90},
		"many small":        {10, 40_000, 0, ringMax},
		"large":             {4096, 5000, 0, ringBytes / 4096},
		"huge":              {1 << 20, 500, 0, ringFloor},
		"as many as may be": {ringBytes / ringMax, ringMax, 0, ringMax},
	} {
		var r ring
		value := make([]byte, tt.size)
		low, now := int64(0), time.Now()
		for i := range tt.pushes {
			if gone := r.push(Event{Object: &Object{Rev: int64(10 * (i + 1)), stored: value}}, now); gone != 0 {
				low = gone
			}
			now = now.Add(tt.pace)
		}
		check(t, name, &r, tt.pushes, tt.held, tt.size, low)
		r.clear()
		if r.first() != r.tail || r.tail != int64(tt.pushes) {
			t.Errorf("%s: cleared, it holds %d to %d", name, r.first(), r.tail)
		}
	}
}

// TestRingAges pushes at a steady pace for long: about as much is held as comes within
// the age, and after the burst the floor.
func TestRingAges(t *testing.T) {
	t.Parallel()
	var r ring
	low, now := int64(0), time.Now()
	const pushes = 20_000
	for i := range pushes {
		if gone := r.push(Event{Object: &Object{Rev: int64(10 * (i + 1)), stored: make([]byte, 8)}}, now); gone != 0 {
			low = gone
		}
		now = now.Add(100 * time.Millisecond)
	}
	if within := int(ringAge / (100 * time.Millisecond)); r.count < within || r.count > 2*within {
		t.Errorf("%d changes are held, of which %d are young", r.count, within)
	}
	check(t, "steady", &r, pushes, r.count, 8, low)
	if d, ok := r.due(now); !ok || d > ringAge {
		t.Errorf("due in %v, %v", d, ok)
	}
	low = max(low, r.trim(now.Add(ringAge)))
	check(t, "quiet", &r, pushes, ringFloor, 8, low)
	if len(r.slots) > 4*ringFloor {
		t.Errorf("there are %d slots for %d changes", len(r.slots), r.count)
	}
	if _, ok := r.due(now); ok {
		t.Error("what is within the floor is due")
	}
}

// check compares what a ring holds after pushes of revisions 10, 20 ….
func check(t *testing.T, name string, r *ring, pushes, held, size int, low int64) {
	t.Helper()
	if r.count != held || r.tail != int64(pushes) || r.first() != int64(pushes-held) || r.bytes != held*size {
		t.Errorf("%s: %d changes up to number %d, %d bytes; want %d", name, r.count, r.tail, r.bytes, held)
	}
	if want := int64(10 * (pushes - held)); low != want {
		t.Errorf("%s: what is gone is up to revision %d, want %d", name, low, want)
	}
	for n := r.first(); n < r.tail; n++ {
		if rev := r.at(n).Object.Rev; rev != 10*(n+1) {
			t.Fatalf("%s: change %d has revision %d", name, n, rev)
		}
	}
	for i := r.count; i < len(r.slots); i++ {
		if r.slots[r.index(i)].Object != nil {
			t.Fatalf("%s: a change that is gone is held", name)
		}
	}
}
