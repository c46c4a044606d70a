package scheduler

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// maxBatchAge bounds how long candidates are reused, as upstream does (KEP-5598).
const maxBatchAge = 500 * time.Millisecond

// batch reuses the candidates of one pod for the next ones, as long as these are the
// same to every plug-in (BatchPlugin). Pods of one Deployment or Job arrive in a row, so
// this is the common case under load.
//
//	pod 1: search + score n nodes ──► heap of (score, node)
//	pod 2: nodes that changed since ──► filter and score again ──► top of the heap
//
// The decision is the same as if those n nodes had been filtered and scored anew. It
// differs from a new search only in that the sample of nodes stays for a while; it
// ends after as many pods as it has nodes, when half of them are full, when a Node
// object changes, or when it is old.
type batch struct {
	f        *Framework
	pod      *PodInfo
	state    *CycleState
	items    []candidate // a heap, best first
	position []int32     // in items by node index, -1 for nodes outside
	epoch    uint64
	listed   uint64
	started  time.Time
	left     int // pods that may still use it
	least    int // it ends when fewer candidates are left
}

type candidate struct {
	node  int32 // index in the snapshot
	score int64
	fixed int64  // part of score from normalised scores
	tie   uint32 // random, orders equal scores
}

func (b *batch) end() {
	b.f, b.pod, b.state = nil, nil, nil
	b.items = b.items[:0]
}

// begin remembers the scored candidates of p.
func (b *batch) begin(s *Scheduler, f *Framework, p *PodInfo, state *CycleState, nodes []*NodeInfo) {
	b.end()
	if !f.batchable || s.queue.Nominated.count.Load() > 0 || !f.same(p, p) {
		return
	}
	// Only worth its cost when the next pod is already there and looks alike.
	if next := s.queue.peek(); next == nil || !f.same(p, next) {
		return
	}
	if cap(b.position) < len(s.snapshot.Nodes) {
		b.position = make([]int32, len(s.snapshot.Nodes))
	}
	b.position = b.position[:len(s.snapshot.Nodes)]
	for i := range b.position {
		b.position[i] = -1
	}
	for i, n := range nodes {
		b.items = append(b.items, candidate{int32(n.Index), s.board.total[i], s.board.fixed[i], rand.Uint32()})
		b.position[n.Index] = int32(i)
	}
	heap.Init(b)
	b.f, b.pod, b.state = f, p, state
	b.epoch, b.listed = s.snapshot.epoch, s.snapshot.listed
	b.started = time.Now()
	b.left = len(nodes)
	b.least = 1
	if len(nodes) < len(s.snapshot.Nodes) {
		b.least = max(len(nodes)/2, 1)
	}
}

// next returns a node for p from the candidates of the previous pods, "" when a new search is due.
func (b *batch) next(s *Scheduler, f *Framework, p *PodInfo) (*CycleState, string) {
	if b.f == nil {
		return nil, ""
	}
	if b.f != f || b.left == 0 || b.epoch != s.snapshot.epoch || b.listed != s.snapshot.listed ||
		p.Pod.Status.NominatedNodeName != "" || s.queue.Nominated.count.Load() > 0 ||
		!f.same(b.pod, p) || time.Since(b.started) > maxBatchAge {
		b.end()
		return nil, ""
	}
	for _, i := range s.snapshot.changed {
		if !b.review(s, f, int32(i)) {
			b.end()
			return nil, ""
		}
	}
	if len(b.items) < b.least {
		b.end()
		return nil, ""
	}
	b.left--
	node := s.snapshot.Nodes[b.items[0].node].Node.Name
	s.attempts.repeated(p, node, b.items[0].score)
	return b.state.share(), node
}

// review filters and scores a changed node again. It returns false on an error.
func (b *batch) review(s *Scheduler, f *Framework, index int32) bool {
	at := b.position[index]
	if at < 0 {
		return true // not in the sample
	}
	node := s.snapshot.Nodes[index]
	if st := f.RunFilter(b.state, b.pod, node); !st.IsSuccess() {
		heap.Remove(b, int(at))
		return st.IsRejected()
	}
	c := &b.items[at]
	score, st := rescore(b.state, b.pod, node, c.fixed)
	if !st.IsSuccess() {
		return false
	}
	c.score, c.tie = score, rand.Uint32()
	heap.Fix(b, int(at))
	return true
}

// same reports whether a and b are the same to all plug-ins.
func (f *Framework) same(a, b *PodInfo) bool {
	if a.Pod.Namespace != b.Pod.Namespace {
		return false
	}
	for _, x := range f.batchers {
		if !x.Same(a, b) {
			return false
		}
	}
	return true
}

// heap.Interface

func (b *batch) Len() int { return len(b.items) }
func (b *batch) Less(i, j int) bool {
	x, y := &b.items[i], &b.items[j]
	return x.score > y.score || x.score == y.score && x.tie > y.tie
}
func (b *batch) Swap(i, j int) {
	b.items[i], b.items[j] = b.items[j], b.items[i]
	b.position[b.items[i].node], b.position[b.items[j].node] = int32(i), int32(j)
}
func (b *batch) Push(any) { panic("scheduler: batch does not grow") }
func (b *batch) Pop() any {
	last := len(b.items) - 1
	b.position[b.items[last].node] = -1
	b.items = b.items[:last]
	return nil
}
