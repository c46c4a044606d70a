package scheduler

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A PodClass stands for all pods on nodes that are the same to terms about other pods:
// same namespace, same labels, same affinity terms. A cluster has about as many classes as
// workloads, so that plug-ins match selectors against some hundred classes instead of
// tens of thousands of pods.
type PodClass struct {
	// Pod has the namespace, labels and affinity terms of the pods, and nothing else.
	Pod PodInfo
	// Terminating pods are a class of their own.
	Terminating bool

	key    string
	refs   int             // pods in the cache; guarded by Cache.mu
	total  int32           // pods in the snapshot
	counts map[int32]int32 // pods by node index; owned by the snapshot
}

// Nodes calls f with each node that has pods of the class, and their number.
func (c *PodClass) Nodes(s *Snapshot, f func(n *NodeInfo, pods int)) {
	for i, count := range c.counts {
		f(s.Nodes[i], int(count))
	}
}

// classDelta is a pod that came to or left a node since the last snapshot.
type classDelta struct {
	class *PodClass
	node  string
	by    int32
}

// maxDeltas bounds Cache.deltas while no pod is scheduled: beyond, the next snapshot
// counts all pods anew.
const maxDeltas = 8192

// classKey identifies a pod's class.
func classKey(p *PodInfo) string {
	var b strings.Builder
	b.WriteString(p.Pod.Namespace)
	if p.Pod.DeletionTimestamp != nil {
		b.WriteByte(1)
	}
	var few [16]string
	keys := few[:0]
	for k := range p.Pod.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b.WriteByte(0)
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(p.Pod.Labels[k])
	}
	if p.Affinity != nil {
		b.WriteByte(2)
		b.WriteString(p.Pod.Spec.Affinity.PodAffinity.String())
		b.WriteString(p.Pod.Spec.Affinity.PodAntiAffinity.String())
	}
	return b.String()
}

// joinLocked puts a pod into its class.
func (c *Cache) joinLocked(p *PodInfo, node string) *PodClass {
	key := classKey(p)
	class := c.classes[key]
	if class == nil {
		class = &PodClass{key: key, Terminating: p.Pod.DeletionTimestamp != nil, counts: map[int32]int32{}}
		pod := &v1.Pod{}
		pod.Namespace, pod.Labels = p.Pod.Namespace, maps.Clone(p.Pod.Labels)
		class.Pod = PodInfo{Pod: pod, Affinity: p.Affinity}
		c.classes[key] = class
	}
	class.refs++
	c.deltaLocked(classDelta{class, node, 1})
	return class
}

func (c *Cache) leaveClassLocked(class *PodClass, node string) {
	if class.refs--; class.refs == 0 {
		delete(c.classes, class.key)
	}
	c.deltaLocked(classDelta{class, node, -1})
}

func (c *Cache) deltaLocked(d classDelta) {
	if c.recount {
		return
	}
	if len(c.deltas) >= maxDeltas {
		c.recount, c.deltas = true, nil
		return
	}
	c.deltas = append(c.deltas, d)
}

// updateClassesLocked brings the classes of s up to date, after its nodes.
func (c *Cache) updateClassesLocked(s *Snapshot, rebuilt bool) {
	if rebuilt || c.recount {
		for _, class := range s.Classes {
			clear(class.counts)
			class.total = 0
		}
		clear(s.Classes)
		s.Classes, s.Affine = s.Classes[:0], 0
		for _, p := range c.pods {
			s.countPod(p.class, p.node, 1)
		}
		c.recount = false
	} else {
		for _, d := range c.deltas {
			s.countPod(d.class, d.node, d.by)
		}
	}
	clear(c.deltas)
	c.deltas = c.deltas[:0]
}

// countPod counts a pod of a class on a node; nodes that are not in s do not count.
func (s *Snapshot) countPod(class *PodClass, node string, by int32) {
	i, ok := s.byName[node]
	if !ok {
		return
	}
	was := class.total
	class.total += by
	if n := class.counts[int32(i)] + by; n != 0 {
		class.counts[int32(i)] = n
	} else {
		delete(class.counts, int32(i))
	}
	sign := 0
	switch {
	case was == 0 && class.total > 0:
		s.Classes = append(s.Classes, class)
		sign = 1
	case was > 0 && class.total == 0:
		at := slices.Index(s.Classes, class)
		s.Classes = slices.Delete(s.Classes, at, at+1)
		sign = -1
	}
	if class.Pod.Affinity != nil {
		s.Affine += sign
	}
}
