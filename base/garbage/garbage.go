package garbage

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// idle is the growth of the heap, in percent, at which it is collected by default.
	idle = 50
	// lent is how many bytes of garbage may stand while the process is busy.
	lent = 96 << 20
	// busy is how many bytes a second a busy process allocates.
	busy = 16 << 20
	// Below this a heap is taken to be that large: the percentage stays sensible.
	least = 8 << 20
)

// Tune sets when the heap is collected, and goes on doing so after every collection:
// it needs no goroutine and no clock of its own. It is called once in a process.
func Tune() {
	debug.SetGCPercent(idle)
	t := &tuner{percent: idle, at: time.Now(), samples: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
	}}
	t.follow()
}

// tuner knows the last collection.
type tuner struct {
	percent   int
	at        time.Time
	allocated uint64 // since the process began
	samples   []metrics.Sample
}

// mark is collected in every cycle; it has a pointer, so that it is not put together
// with other small objects.
type mark struct{ t *tuner }

// follow has the tuner called after the next collection.
func (t *tuner) follow() {
	runtime.AddCleanup(&mark{t}, func(t *tuner) {
		t.collected(time.Now())
		t.follow()
	}, t)
}

func (t *tuner) collected(now time.Time) {
	metrics.Read(t.samples)
	live, allocated := t.samples[0].Value.Uint64(), t.samples[1].Value.Uint64()
	percent := percentage(live, allocated-t.allocated, now.Sub(t.at))
	t.at, t.allocated = now, allocated
	if percent != t.percent {
		t.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentage is the growth at which a heap is collected next: of which live bytes were
// found alive, and which grew by so many in this time. It is a multiple of 50, as
// changing it stops the program for a moment.
func percentage(live, grown uint64, in time.Duration) int {
	if in <= 0 || float64(grown)/in.Seconds() < busy {
		return idle
	}
	return max(idle, int(lent*100/max(live, least)/idle*idle))
}
