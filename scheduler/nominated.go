package scheduler

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// Nominated remembers which node was cleared for which pod by preemption, so that
// lower pods do not slip in while its victims go.
type Nominated struct {
	count  atomic.Int32 // of pods, to leave the common path without the lock
	mu     sync.RWMutex
	byNode map[string][]*PodInfo // guarded by mu
	node   map[types.UID]string  // guarded by mu
}

// Nominate remembers p for the node; "" forgets it.
func (n *Nominated) Nominate(p *PodInfo, node string) {
	if node == "" && n.count.Load() == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removeLocked(p.UID())
	if node == "" {
		return
	}
	if n.node == nil {
		n.node, n.byNode = map[types.UID]string{}, map[string][]*PodInfo{}
	}
	n.node[p.UID()] = node
	n.byNode[node] = append(slices.Clip(n.byNode[node]), p)
	n.count.Store(int32(len(n.node)))
}

// Remove forgets a pod.
func (n *Nominated) Remove(uid types.UID) {
	if n.count.Load() == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removeLocked(uid)
}

func (n *Nominated) removeLocked(uid types.UID) {
	node, ok := n.node[uid]
	if !ok {
		return
	}
	delete(n.node, uid)
	rest := slices.DeleteFunc(slices.Clone(n.byNode[node]), func(p *PodInfo) bool { return p.UID() == uid })
	if n.byNode[node] = rest; len(rest) == 0 {
		delete(n.byNode, node)
	}
	n.count.Store(int32(len(n.node)))
}

// NominatedPods returns the pods nominated for a node; the slice must not be changed.
func (n *Nominated) NominatedPods(node string) []*PodInfo {
	if n.count.Load() == 0 {
		return nil
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byNode[node]
}
