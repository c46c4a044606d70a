package app

import (
	"sync/atomic"

	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/gateway"
	"github.com/periplus/periplus/mesh/ca"
	"github.com/periplus/periplus/mesh/edge"
)

// A meshEdge is the gateway's part in the mesh on a server. It finds pods in the
// informer that the server has anyway.
type meshEdge struct {
	edge.Edge
	pods atomic.Pointer[corelisters.PodLister]
}

var _ gateway.Mesh = (*meshEdge)(nil)

// join gives the edge its identity, which is returned.
func (m *meshEdge) join(a *ca.Authority) *ca.Workload {
	w := ca.NewWorkload(a, edge.Identity)
	m.Join(w, m.peer)
	return w
}

func (m *meshEdge) peer(namespace, name string) (edge.Peer, bool) {
	lister := m.pods.Load()
	if lister == nil {
		return edge.Peer{}, false
	}
	pod, err := (*lister).Pods(namespace).Get(name)
	if err != nil {
		return edge.Peer{}, false
	}
	return edge.PeerOf(pod), true
}
