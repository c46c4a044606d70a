package scheduler

import "container/heap"

// podHeap is a heap of queued pods that know their index.
type podHeap struct {
	items []*QueuedPod
	less  func(a, b *QueuedPod) bool
}

var _ heap.Interface = (*podHeap)(nil)

func (h *podHeap) Len() int           { return len(h.items) }
func (h *podHeap) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }
func (h *podHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i, j
}

// Push and Pop are for container/heap only.
func (h *podHeap) Push(x any) {
	qp := x.(*QueuedPod)
	qp.index = len(h.items)
	h.items = append(h.items, qp)
}

func (h *podHeap) Pop() any {
	last := len(h.items) - 1
	qp := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	return qp
}

func (h *podHeap) push(qp *QueuedPod)   { heap.Push(h, qp) }
func (h *podHeap) remove(qp *QueuedPod) { heap.Remove(h, qp.index) }
func (h *podHeap) fix(qp *QueuedPod)    { heap.Fix(h, qp.index) }
