package defaultpreemption

import (
	"cmp"
	"math"
	"slices"
)

// pick returns the candidate that does the least harm: by fewest violated budgets,
// then lowest priority of the most important victim, then lowest sum of priorities, then
// fewest victims, then the one whose most important victims started last, then the first.
func pick(candidates []*candidate) *candidate {
	return slices.MinFunc(candidates, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.violations, b.violations),
			cmp.Compare(a.victims[0].Priority, b.victims[0].Priority),
			cmp.Compare(a.sum(), b.sum()),
			cmp.Compare(len(a.victims), len(b.victims)),
			b.earliest().Compare(a.earliest()),
		)
	})
}

// sum adds up the priorities, moved into the positive so that more victims weigh more.
func (c *candidate) sum() int64 {
	var sum int64
	for _, v := range c.victims {
		sum += int64(v.Priority) + math.MaxInt32 + 1
	}
	return sum
}
