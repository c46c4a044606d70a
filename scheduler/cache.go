package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/node/topology"
)

// Cache is what the scheduler believes about nodes and the pods on them: what the
// informers said, plus pods that were assumed on a node and are not yet bound.
//
// It is written by informer handlers and by the scheduling goroutine and read through
// Snapshots. A NodeInfo that a snapshot holds is shared: the cache clones it before
// the next change, so taking a snapshot costs nothing per node that did not change.
type Cache struct {
	table *ResourceTable

	mu      sync.Mutex
	nodes   map[string]*cachedNode   // guarded by mu
	pods    map[types.UID]*cachedPod // guarded by mu
	zones   map[string][]string      // node names by region and zone; guarded by mu
	images  map[string]*ImageState   // guarded by mu
	classes map[string]*PodClass     // by classKey; guarded by mu
	deltas  []classDelta             // pods since the last snapshot; guarded by mu
	recount bool                     // deltas were dropped; guarded by mu
	dirty   []*cachedNode            // changed since the last snapshot; guarded by mu
	epoch   uint64                   // raised when a Node object changes; guarded by mu
	listed  uint64                   // raised when nodes come or go; guarded by mu
}

type cachedNode struct {
	info    *NodeInfo
	shared  bool // a snapshot holds info
	dirty   bool // is in Cache.dirty
	resized bool // its sums changed since the last snapshot, not only a pod's pointer
	gone    bool // the Node object was deleted, pods are left
}

type cachedPod struct {
	info    *PodInfo
	node    string
	class   *PodClass
	assumed bool
}

// NewCache returns an empty cache.
func NewCache(table *ResourceTable) *Cache {
	return &Cache{
		table:   table,
		nodes:   map[string]*cachedNode{},
		pods:    map[types.UID]*cachedPod{},
		zones:   map[string][]string{},
		images:  map[string]*ImageState{},
		classes: map[string]*PodClass{},
	}
}

// changeLocked returns n's NodeInfo for writing.
func (c *Cache) changeLocked(n *cachedNode, resized bool) *NodeInfo {
	if n.shared {
		// The newest version goes on owning the arrays behind its slices: older
		// versions never look beyond their own length.
		info := *n.info
		n.info, n.shared = &info, false
	}
	n.resized = n.resized || resized
	if !n.dirty {
		n.dirty = true
		c.dirty = append(c.dirty, n)
	}
	return n.info
}

func (c *Cache) nodeLocked(name string) *cachedNode {
	n := c.nodes[name]
	if n == nil {
		// A pod can arrive before its node.
		n = &cachedNode{info: &NodeInfo{Node: &v1.Node{}}, gone: true}
		n.info.Node.Name = name
		c.nodes[name] = n
	}
	return n
}

// SetNode adds or updates a node.
func (c *Cache) SetNode(node *v1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodeLocked(node.Name)
	old, known := n.info.Node, !n.gone
	if !known {
		n.gone = false
		c.listed++
		zone := topology.GetZoneKey(node)
		c.zones[zone] = append(c.zones[zone], node.Name)
		c.epoch++
	} else {
		if from, to := topology.GetZoneKey(old), topology.GetZoneKey(node); from != to {
			c.leaveZoneLocked(from, node.Name)
			c.zones[to] = append(c.zones[to], node.Name)
			c.listed++
		}
		if sameForScheduling(old, node) {
			c.changeLocked(n, false).Node = node // a heartbeat
			return
		}
		c.epoch++
	}
	info := c.changeLocked(n, true)
	if !known || !sameImages(old.Status.Images, node.Status.Images) {
		c.dropImagesLocked(info)
		info.Images = c.imagesLocked(node)
	}
	info.setNode(node, c.table)
}

// RemoveNode removes a node. Pods on it stay known until their own deletion.
func (c *Cache) RemoveNode(node *v1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[node.Name]
	if n == nil || n.gone {
		return
	}
	n.gone = true
	c.leaveZoneLocked(topology.GetZoneKey(n.info.Node), node.Name)
	c.listed++
	c.epoch++
	info := c.changeLocked(n, true)
	c.dropImagesLocked(info)
	info.Node = &v1.Node{}
	info.Node.Name = node.Name
	c.dropNodeLocked(n)
}

// dropNodeLocked forgets a node without object and without pods.
func (c *Cache) dropNodeLocked(n *cachedNode) {
	if n.gone && len(n.info.Pods) == 0 {
		delete(c.nodes, n.info.Node.Name)
	}
}

func (c *Cache) leaveZoneLocked(zone, name string) {
	names := c.zones[zone]
	if i := slices.Index(names, name); i >= 0 {
		names = slices.Delete(slices.Clone(names), i, i+1)
	}
	if len(names) == 0 {
		delete(c.zones, zone)
		return
	}
	c.zones[zone] = names
}

func (c *Cache) imagesLocked(node *v1.Node) map[string]*ImageState {
	if len(node.Status.Images) == 0 {
		return nil
	}
	out := make(map[string]*ImageState, 2*len(node.Status.Images))
	for i := range node.Status.Images {
		image := &node.Status.Images[i]
		for _, name := range image.Names {
			s := c.images[name]
			if s == nil {
				s = &ImageState{Size: image.SizeBytes}
				c.images[name] = s
			}
			if out[name] == nil {
				s.nodes.Add(1)
				out[name] = s
			}
		}
	}
	return out
}

func (c *Cache) dropImagesLocked(info *NodeInfo) {
	for name, s := range info.Images {
		if s.nodes.Add(-1) == 0 {
			delete(c.images, name)
		}
	}
	info.Images = nil
}

// HasImage reports whether any node has the image.
func (c *Cache) HasImage(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.images[name] != nil
}

// Assume puts p on a node before it is bound. p.Pod must name the node.
func (c *Cache) Assume(p *PodInfo) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.pods[p.Pod.UID]; old != nil {
		return fmt.Errorf("pod %s/%s is already on node %s in the cache and cannot be assumed on %s", p.Pod.Namespace, p.Pod.Name, old.node, p.Pod.Spec.NodeName)
	}
	c.addLocked(p, true)
	return nil
}

// Forget undoes Assume and reports whether p was still assumed.
func (c *Cache) Forget(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[uid]
	if p == nil || !p.assumed {
		return false
	}
	c.removeLocked(uid)
	return true
}

// IsAssumed reports whether the pod is assumed and not yet confirmed.
func (c *Cache) IsAssumed(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[uid]
	return p != nil && p.assumed
}

// SetPod adds or updates a pod that is bound to a node; an assumed one is confirmed.
// It returns the previous version.
func (c *Cache) SetPod(pod *v1.Pod) (old *PodInfo) {
	info := NewPodInfo(pod, c.table)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[pod.UID]
	if p == nil {
		c.addLocked(info, false)
		return nil
	}
	old = p.info
	p.assumed = false
	if p.node == pod.Spec.NodeName && samePlacement(old, info) {
		p.info = info
		c.changeLocked(c.nodes[p.node], false).replacePod(info)
		return old
	}
	c.removeLocked(pod.UID)
	c.addLocked(info, false)
	return old
}

// RemovePod forgets a pod, bound or assumed, and returns it as it was.
func (c *Cache) RemovePod(uid types.UID) *PodInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removeLocked(uid)
}

func (c *Cache) addLocked(p *PodInfo, assumed bool) {
	name := p.Pod.Spec.NodeName
	c.pods[p.Pod.UID] = &cachedPod{info: p, node: name, class: c.joinLocked(p, name), assumed: assumed}
	c.changeLocked(c.nodeLocked(name), true).AddPod(p)
}

func (c *Cache) removeLocked(uid types.UID) *PodInfo {
	p := c.pods[uid]
	if p == nil {
		return nil
	}
	delete(c.pods, uid)
	n := c.nodes[p.node]
	c.leaveClassLocked(p.class, p.node)
	c.changeLocked(n, true).RemovePod(uid)
	c.dropNodeLocked(n)
	return p.info
}

// samePlacement reports whether swapping a for b leaves a node's sums, and what
// other pods' affinity terms see, as they are.
func samePlacement(a, b *PodInfo) bool {
	return a.Requests.Equal(&b.Requests) && a.NonZero.Equal(&b.NonZero) && slices.Equal(a.Ports, b.Ports) &&
		(a.Affinity == nil) == (b.Affinity == nil) && maps.Equal(a.Pod.Labels, b.Pod.Labels) &&
		(a.Pod.DeletionTimestamp == nil) == (b.Pod.DeletionTimestamp == nil)
}
