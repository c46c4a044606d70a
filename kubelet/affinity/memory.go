package affinity

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/periplus/periplus/linux/numa"
)

// memory knows how much of each NUMA node Guaranteed containers have. It is guarded by
// the Assigner.
type memory struct {
	nodes []numa.Node
	room  []int64 // what each node can give
	given map[owner]share
}

// share is memory of some nodes.
type share struct {
	Mask  Mask  `json:"nodes"`
	Bytes int64 `json:"bytes"`
}

func newMemory(c *Config) *memory {
	m := &memory{nodes: c.Machine.Nodes, given: map[owner]share{}}
	left := c.ReservedMemory
	for _, n := range m.nodes {
		have := int64(n.Memory) //nolint:gosec // smaller than 2^63
		keep := min(left, have)
		left -= keep
		m.room = append(m.room, have-keep)
	}
	return m
}

// free is what the nodes of a mask still have. Nodes that are given as a group count
// for that group only.
func (m *memory) free(mask Mask) int64 {
	var sum int64
	for _, i := range mask.nodes() {
		sum += m.room[i]
	}
	for _, s := range m.given {
		if s.Mask&mask != 0 {
			sum -= s.Bytes
		}
	}
	return sum
}

// apart says whether a mask does not cut through a group that somebody has.
func (m *memory) apart(mask Mask) bool {
	for _, s := range m.given {
		if s.Mask&mask != 0 && s.Mask != mask && (s.Mask.count() > 1 || mask.count() > 1) {
			return false
		}
	}
	return true
}

func (m *memory) hints(bytes int64) []Hint {
	total := func(mask Mask) (sum int64) {
		for _, i := range mask.nodes() {
			sum += m.room[i]
		}
		return sum
	}
	return hints(len(m.nodes),
		func(mask Mask) bool { return m.apart(mask) && m.free(mask) >= bytes },
		func(mask Mask) bool { return total(mask) >= bytes })
}

// take gives memory of the nodes of mask, or of more if that is too little.
func (m *memory) take(o owner, bytes int64, mask Mask) error {
	best, ok := Mask(0), false
	for _, h := range m.hints(bytes) {
		inside := h.Mask&^mask == 0
		switch {
		case !ok, inside && best&^mask != 0, inside == (best&^mask == 0) && h.Mask.narrower(best):
			best, ok = h.Mask, true
		}
	}
	if !ok {
		return fmt.Errorf("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
	}
	m.given[o] = share{best, bytes}
	return nil
}

// list writes the nodes of a mask as cpuset.mems wants them.
func (m *memory) list(mask Mask) string {
	var out []string
	for _, i := range mask.nodes() {
		out = append(out, strconv.Itoa(m.nodes[i].ID))
	}
	return strings.Join(out, ",")
}
