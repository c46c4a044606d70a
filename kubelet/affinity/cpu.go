package affinity

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/periplus/periplus/linux/numa"
)

// processors knows who has which. It is guarded by the Assigner.
type processors struct {
	machine  numa.Machine
	all      cpuset.CPUSet
	reserved cpuset.CPUSet // shared for ever
	whole    bool          // full-pcpus-only
	given    map[owner]cpuset.CPUSet
}

func newProcessors(c *Config) (*processors, error) {
	p := &processors{machine: c.Machine, given: map[owner]cpuset.CPUSet{}, whole: c.CPUOptions[FullPCPUsOnly] == "true"}
	ids := make([]int, len(c.Machine.CPUs))
	for i, cpu := range c.Machine.CPUs {
		ids[i] = cpu.ID
	}
	p.all = cpuset.New(ids...)
	var err error
	if p.reserved, err = cpuset.Parse(c.ReservedCPUs); err != nil {
		return nil, err
	}
	if p.reserved.IsEmpty() {
		n := int((c.ReservedMilliCPU + 999) / 1000)
		if p.reserved, err = p.choose(p.all, min(n, p.all.Size())); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// shared is what containers without processors of their own may use.
func (p *processors) shared() cpuset.CPUSet {
	out := p.all
	for _, s := range p.given {
		out = out.Difference(s)
	}
	return out
}

func (p *processors) free() cpuset.CPUSet { return p.shared().Difference(p.reserved) }

// on are those of some NUMA nodes.
func (p *processors) on(m Mask) cpuset.CPUSet {
	var ids []int
	for _, cpu := range p.machine.CPUs {
		for _, i := range m.nodes() {
			if i < len(p.machine.Nodes) && p.machine.Nodes[i].ID == cpu.Node {
				ids = append(ids, cpu.ID)
			}
		}
	}
	return cpuset.New(ids...)
}

// hints: where n processors could come from.
func (p *processors) hints(n int, reusable cpuset.CPUSet) []Hint {
	free := p.free().Union(reusable)
	return hints(len(p.machine.Nodes),
		func(m Mask) bool { return p.on(m).Intersection(free).Size() >= n },
		func(m Mask) bool { return p.on(m).Size() >= n })
}

// take gives n processors: reusable ones first, then from the nodes of m, then others.
func (p *processors) take(o owner, n int, m Mask, reusable cpuset.CPUSet) (cpuset.CPUSet, error) {
	if p.whole && n%p.threads() != 0 {
		return cpuset.New(), fmt.Errorf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", n, p.threads())
	}
	free := p.free().Union(reusable)
	if free.Size() < n {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, free.Size())
	}
	got := cpuset.New()
	for _, from := range []cpuset.CPUSet{reusable.Intersection(p.on(m)), reusable, free.Intersection(p.on(m)), free} {
		from = from.Difference(got)
		more, err := p.choose(from, min(n-got.Size(), from.Size()))
		if err != nil {
			return cpuset.New(), err
		}
		got = got.Union(more)
	}
	p.given[o] = got
	return got, nil
}

func (p *processors) threads() int {
	cores := map[int]bool{}
	for _, c := range p.machine.CPUs {
		cores[c.Core] = true
	}
	return max(1, len(p.machine.CPUs)/max(1, len(cores)))
}

// choose takes n of a set, such that whole things stay together: first nodes and
// sockets that are free as a whole, then cores, then single threads of the cores of
// which least is left.
func (p *processors) choose(from cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	if from.Size() < n {
		return cpuset.New(), fmt.Errorf("not enough cpus available to satisfy request: requested=%d, available=%d", n, from.Size())
	}
	got := cpuset.New()
	for _, of := range []func(numa.CPU) int{
		func(c numa.CPU) int { return c.Socket },
		func(c numa.CPU) int { return c.Node },
		func(c numa.CPU) int { return c.Core },
	} {
		for _, group := range p.groups(of) {
			left := n - got.Size()
			if left >= group.Size() && group.IsSubsetOf(from.Difference(got)) {
				got = got.Union(group)
			}
		}
	}
	left := from.Difference(got)
	ids := left.List()
	of := func(id int) int {
		for _, c := range p.machine.CPUs {
			if c.ID == id {
				return c.Core
			}
		}
		return -1
	}
	partly := map[int]int{}
	for _, id := range ids {
		partly[of(id)]++
	}
	slices.SortStableFunc(ids, func(a, b int) int { return partly[of(a)] - partly[of(b)] })
	return got.Union(cpuset.New(ids[:n-got.Size()]...)), nil
}

// groups divides all processors by a property, in its order.
func (p *processors) groups(of func(numa.CPU) int) []cpuset.CPUSet {
	ids := map[int][]int{}
	var order []int
	for _, c := range p.machine.CPUs {
		g := of(c)
		if ids[g] == nil {
			order = append(order, g)
		}
		ids[g] = append(ids[g], c.ID)
	}
	slices.Sort(order)
	out := make([]cpuset.CPUSet, len(order))
	for i, g := range order {
		out[i] = cpuset.New(ids[g]...)
	}
	return out
}
