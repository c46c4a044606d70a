package hollow

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// An actor does what is due.
type actor interface{ act(ctx context.Context) }

// An entry is one actor's place in an agenda; its zero value is not in it.
type entry struct {
	due   time.Time
	index int // 1 + its place in the heap
}

// An agenda calls actors when they are due, a limited number at a time, with one
// timer for all. Times are rounded up to a grid, so that what is due at almost the
// same time is done in one go.
type agenda struct {
	grid time.Duration
	wake chan struct{} // capacity 1: the first is another one

	mu   sync.Mutex // guards heap and the entries in it
	heap agendaHeap
}

func newAgenda(grid time.Duration) *agenda {
	return &agenda{grid: grid, wake: make(chan struct{}, 1)}
}

// at makes an actor due; one that is in the agenda moves.
func (a *agenda) at(e *entry, who actor, due time.Time) {
	due = due.Add(a.grid - 1).Truncate(a.grid)
	a.mu.Lock()
	defer a.mu.Unlock()
	e.due = due
	if e.index == 0 {
		heap.Push(&a.heap, scheduled{e, who})
	} else {
		heap.Fix(&a.heap, e.index-1)
	}
	if e.index == 1 {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// drop takes an actor out.
func (a *agenda) drop(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.index > 0 {
		heap.Remove(&a.heap, e.index-1)
	}
}

// run calls actors until ctx ends, and returns when all have returned.
func (a *agenda) run(ctx context.Context, limit int) error {
	due := make(chan actor)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(due)
	idle := limit
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		who, wait := a.next(time.Now())
		if who != nil {
			// A worker more while all are busy, up to the limit; they stay.
			select {
			case due <- who:
				continue
			default:
			}
			if idle > 0 {
				idle--
				workers.Go(func() {
					for who := range due {
						who.act(ctx)
					}
				})
			}
			select {
			case due <- who:
			case <-ctx.Done():
				return nil
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-a.wake:
		}
	}
}

// next takes out the first actor if it is due; else it says how long to wait.
func (a *agenda) next(now time.Time) (actor, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heap) == 0 {
		return nil, time.Hour
	}
	if wait := a.heap[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&a.heap).(scheduled).who, 0
}

type scheduled struct {
	*entry
	who actor
}

type agendaHeap []scheduled

func (h agendaHeap) Len() int           { return len(h) }
func (h agendaHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h agendaHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *agendaHeap) Push(x any) {
	s := x.(scheduled)
	s.index = len(*h) + 1
	*h = append(*h, s)
}

func (h *agendaHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = scheduled{}
	s.index = 0
	*h = old[:len(old)-1]
	return s
}
