package scheduler

import (
	"maps"
	"slices"
)

// A Snapshot is a consistent view of all nodes during one scheduling cycle. It is
// owned by the scheduling goroutine and brought up to date between cycles.
type Snapshot struct {
	// Nodes are all nodes, zone by zone in turns, so that a prefix of the list is
	// spread over the zones.
	Nodes []*NodeInfo
	// Classes are those of the pods on Nodes.
	Classes []*PodClass
	// Affine counts the classes with affinity terms.
	Affine int
	// PreferTaints counts nodes with a PreferNoSchedule taint.
	PreferTaints int

	byName  map[string]int
	changed []int // indexes whose sums changed with the last update
	epoch   uint64
	listed  uint64
}

// Get returns the node with the name, nil when there is none.
func (s *Snapshot) Get(name string) *NodeInfo {
	if i, ok := s.byName[name]; ok {
		return s.Nodes[i]
	}
	return nil
}

// Epoch changes whenever a Node object changes in what plug-ins look at, or nodes come
// or go. Until then, what was computed from Node objects alone stays valid by NodeInfo.Index.
func (s *Snapshot) Epoch() uint64 { return s.epoch }

func (s *Snapshot) set(nodes []*NodeInfo) {
	s.Nodes = nodes
	s.byName = make(map[string]int, len(nodes))
	s.PreferTaints = 0
	for i, n := range nodes {
		n.Index = i
		s.byName[n.Node.Name] = i
		s.count(n, 1)
	}
}

func (s *Snapshot) count(n *NodeInfo, sign int) {
	if n.PreferTaints {
		s.PreferTaints += sign
	}
}

// Update brings s up to date with c. Only nodes that changed are touched, unless
// nodes came or went.
func (c *Cache) Update(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.changed = s.changed[:0]
	rebuild := s.listed != c.listed
	for _, n := range c.dirty {
		n.dirty = false
		if rebuild || n.gone {
			continue
		}
		n.shared = true
		i := s.byName[n.info.Node.Name]
		s.count(s.Nodes[i], -1)
		s.count(n.info, 1)
		n.info.Index = i
		s.Nodes[i] = n.info
		if n.resized {
			s.changed = append(s.changed, i)
		}
		n.resized = false
	}
	clear(c.dirty)
	c.dirty = c.dirty[:0]
	s.epoch = c.epoch
	if rebuild {
		s.listed = c.listed
		s.set(c.listLocked())
	}
	c.updateClassesLocked(s, rebuild)
}

// listLocked returns all nodes, one of each zone in turn.
func (c *Cache) listLocked() []*NodeInfo {
	zones := slices.Sorted(maps.Keys(c.zones))
	nodes := make([]*NodeInfo, 0, len(c.nodes))
	for round, more := 0, true; more; round++ {
		more = false
		for _, zone := range zones {
			names := c.zones[zone]
			if round >= len(names) {
				continue
			}
			more = true
			n := c.nodes[names[round]]
			if n.shared { // its index may change under an older snapshot
				info := *n.info
				n.info = &info
			}
			n.shared, n.resized = true, false
			nodes = append(nodes, n.info)
		}
	}
	return nodes
}
