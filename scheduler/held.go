package scheduler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxHold bounds how long a Permit plug-in may hold a pod.
const maxHold = 15 * time.Minute

// held are the pods that Permit plug-ins hold before binding.
type held struct {
	mu   sync.Mutex
	pods map[types.UID]*HeldPod // guarded by mu
}

// A HeldPod waits for Permit plug-ins.
type HeldPod struct {
	Info *PodInfo

	mu      sync.Mutex
	pending map[string]time.Duration // plug-ins that hold it; guarded by mu
	result  chan *Status             // has room for one; the first result counts
}

func (h *held) add(p *PodInfo, waits map[string]time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pods == nil {
		h.pods = map[types.UID]*HeldPod{}
	}
	h.pods[p.UID()] = &HeldPod{Info: p, pending: waits, result: make(chan *Status, 1)}
}

func (h *held) get(uid types.UID) *HeldPod {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pods[uid]
}

// wait blocks until the pod is allowed or rejected; nil at once when it is not held.
func (h *held) wait(ctx context.Context, uid types.UID) *Status {
	p := h.get(uid)
	if p == nil {
		return nil
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pods, uid)
	}()
	limit, by := maxHold, ""
	p.mu.Lock()
	for name, d := range p.pending {
		if d < limit {
			limit, by = d, name
		}
	}
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case s := <-p.result:
		return s
	case <-timer.C:
		return NewStatus(by, Unschedulable, fmt.Sprintf("rejected due to timeout after waiting %v at plugin %v", limit, by))
	case <-ctx.Done():
		return ErrorStatus("", ctx.Err())
	}
}

// Allow removes plugin's hold. The pod goes on when no other plug-in holds it.
func (p *HeldPod) Allow(plugin string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, plugin)
	if len(p.pending) == 0 {
		p.finish(nil)
	}
}

// Reject ends the wait; the pod is unschedulable for plugin's reason.
func (p *HeldPod) Reject(plugin, reason string) { p.finish(NewStatus(plugin, Unschedulable, reason)) }

func (p *HeldPod) finish(s *Status) {
	select {
	case p.result <- s:
	default:
	}
}

// WaitingPod returns a pod that Permit holds, nil when it is not held.
func (f *Framework) WaitingPod(uid types.UID) *HeldPod { return f.held.get(uid) }
