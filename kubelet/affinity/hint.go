package affinity

import (
	"math/bits"
	"slices"
)

// Mask is a set of NUMA nodes by position in the machine's list; 0 stands for any.
type Mask uint64

func (m Mask) count() int { return bits.OnesCount64(uint64(m)) }

// nodes lists the positions.
func (m Mask) nodes() []int {
	var out []int
	for i := range 64 {
		if m&(1<<i) != 0 {
			out = append(out, i)
		}
	}
	return out
}

// narrower orders masks: fewer nodes first, then lower ones.
func (m Mask) narrower(o Mask) bool {
	if m.count() != o.count() {
		return m.count() < o.count()
	}
	return m < o
}

// A Hint is where something could come from. Preferred: nothing narrower would do.
type Hint struct {
	Mask      Mask
	Preferred bool
}

// masks lists all sets of n nodes.
func masks(n int) []Mask {
	out := make([]Mask, 0, 1<<n-1)
	for m := Mask(1); m < 1<<n; m++ {
		out = append(out, m)
	}
	return out
}

// hints are the masks that fits likes; the narrowest possible on an empty machine are
// preferred.
func hints(n int, fits func(Mask) bool, possible func(Mask) bool) []Hint {
	least := n + 1
	for _, m := range masks(n) {
		if possible(m) && m.count() < least {
			least = m.count()
		}
	}
	out := []Hint{} // none fits: not nil, which says that nothing is wanted
	for _, m := range masks(n) {
		if fits(m) {
			out = append(out, Hint{m, m.count() == least})
		}
	}
	return out
}

// merge finds the best place for all: lists has one list of hints for each thing that
// is wanted; n is the number of nodes. ok says whether the policy lets the pod run.
func merge(policy string, n int, lists [][]Hint) (best Hint, ok bool) {
	all := Mask(1)<<n - 1
	best = Hint{Mask: all, Preferred: len(lists) == 0}
	if len(lists) == 0 {
		return best, true
	}
	if policy == SingleNUMANode {
		for i, l := range lists {
			lists[i] = slices.DeleteFunc(slices.Clone(l), func(h Hint) bool { return !h.Preferred || h.Mask != 0 && h.Mask.count() != 1 })
		}
	}
	found := false
	var walk func(int, Hint)
	walk = func(i int, h Hint) {
		if i == len(lists) {
			if h.Mask == 0 {
				return // nowhere for all
			}
			if !found || h.Preferred && !best.Preferred || h.Preferred == best.Preferred && h.Mask.narrower(best.Mask) {
				best, found = h, true
			}
			return
		}
		if len(lists[i]) == 0 {
			walk(i+1, Hint{h.Mask, false}) // it cannot be had anywhere: allocation will say so
			return
		}
		for _, next := range lists[i] {
			mask := next.Mask
			if mask == 0 {
				mask = all
			}
			walk(i+1, Hint{h.Mask & mask, h.Preferred && next.Preferred})
		}
	}
	walk(0, Hint{all, true})
	switch policy {
	case Restricted:
		return best, best.Preferred && found
	case SingleNUMANode:
		return best, best.Preferred && found && (best.Mask.count() == 1 || best.Mask == all)
	}
	return best, true
}
