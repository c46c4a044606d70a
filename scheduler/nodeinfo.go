package scheduler

import (
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A NodeInfo is a node with the pods on it and their sums. Those in a Snapshot
// are immutable; Clone before changing one.
type NodeInfo struct {
	// What every filter reads comes first, within few cache lines.

	Index            int  // position in the snapshot
	Unschedulable    bool // cordoned
	NoScheduleTaints bool // has a taint with effect NoSchedule or NoExecute
	PreferTaints     bool // has a taint with effect PreferNoSchedule
	AllowedPods      int
	Pods             []*PodInfo // on the node, assumed ones included
	Allocatable      Resources
	Requested        Resources // by Pods
	NonZero          Resources // by Pods, with defaults for scores

	Node   *v1.Node
	Images map[string]*ImageState
	Ports  []HostPort // of Pods
}

// Name returns the node's name.
func (n *NodeInfo) Name() string { return n.Node.Name }

// ImageState is an image on one or more nodes.
type ImageState struct {
	Size  int64
	nodes atomic.Int32
}

// Nodes returns the number of nodes that have the image.
func (s *ImageState) Nodes() int { return int(s.nodes.Load()) }

// Clone returns a copy to which pods can be added and removed.
func (n *NodeInfo) Clone() *NodeInfo {
	c := *n
	c.Pods = slices.Clip(n.Pods) // an append to the copy must not write into n's array
	c.Ports = slices.Clip(n.Ports)
	return &c
}

// AddPod puts p on the node.
func (n *NodeInfo) AddPod(p *PodInfo) {
	n.Pods = append(n.Pods, p)
	n.Ports = append(n.Ports, p.Ports...)
	n.Requested.add(&p.Requests, 1)
	n.NonZero.add(&p.NonZero, 1)
}

// RemovePod takes the pod with the UID off the node and returns it, nil when it is not there.
func (n *NodeInfo) RemovePod(uid types.UID) *PodInfo {
	i := slices.IndexFunc(n.Pods, func(p *PodInfo) bool { return p.Pod.UID == uid })
	if i < 0 {
		return nil
	}
	p := n.Pods[i]
	n.Pods = without(n.Pods, p)
	if len(p.Ports) > 0 {
		n.Ports = nil
		for _, other := range n.Pods {
			n.Ports = append(n.Ports, other.Ports...)
		}
	}
	n.Requested.add(&p.Requests, -1)
	n.NonZero.add(&p.NonZero, -1)
	return p
}

// replacePod swaps p for the pod with the same UID, which has the same sums.
func (n *NodeInfo) replacePod(p *PodInfo) {
	if i := slices.IndexFunc(n.Pods, func(o *PodInfo) bool { return o.Pod.UID == p.Pod.UID }); i >= 0 {
		n.Pods = slices.Clone(n.Pods)
		n.Pods[i] = p
	}
}

// without returns a new slice, because clones share the old one.
func without(pods []*PodInfo, p *PodInfo) []*PodInfo {
	i := slices.Index(pods, p)
	if i < 0 {
		return pods
	}
	out := make([]*PodInfo, 0, len(pods)-1)
	out = append(out, pods[:i]...)
	return append(out, pods[i+1:]...)
}

// setNode takes over what the Node object says, but for images.
func (n *NodeInfo) setNode(node *v1.Node, table *ResourceTable) {
	n.Node = node
	n.Allocatable = table.List(node.Status.Allocatable)
	n.AllowedPods = int(node.Status.Allocatable.Pods().Value())
	n.Unschedulable = node.Spec.Unschedulable
	n.NoScheduleTaints, n.PreferTaints = false, false
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Effect == v1.TaintEffectPreferNoSchedule {
			n.PreferTaints = true
		} else {
			n.NoScheduleTaints = true
		}
	}
}

// NewNodeInfo returns a node outside any cache, with pods on it.
func NewNodeInfo(node *v1.Node, table *ResourceTable, pods ...*v1.Pod) *NodeInfo {
	n := &NodeInfo{}
	n.setNode(node, table)
	for _, p := range pods {
		n.AddPod(NewPodInfo(p, table))
	}
	return n
}
