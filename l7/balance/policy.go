package balance

import (
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// roundRobin goes through a schedule in which each member has its weight.
type roundRobin struct {
	index    []int
	schedule []int
	at       atomic.Uint64
}

// maxSchedule bounds the schedule of uneven weights; beyond it they are rounded.
const maxSchedule = 4096

func newRoundRobin(hosts []*Host, index []int) *roundRobin {
	r := &roundRobin{index: index, schedule: index}
	weights := make([]int, len(index))
	total, even, divisor := 0, true, 0
	for i, h := range index {
		weights[i] = int(weightOf(hosts[h].Endpoint()))
		total += weights[i]
		divisor = gcd(divisor, weights[i])
		even = even && weights[i] == weights[0]
	}
	if !even {
		r.schedule = smooth(index, weights, total, divisor)
	}
	// Proxies that start together shall not all begin with the same endpoint.
	r.at.Store(rand.Uint64N(uint64(len(r.schedule))))
	return r
}

// smooth interleaves the members by weight: 5,1,1 gives a a b a c a a.
func smooth(index, weights []int, total, divisor int) []int {
	length := total / divisor
	if length > maxSchedule {
		length = max(maxSchedule, len(index))
	}
	current := make([]float64, len(index))
	out := make([]int, 0, length)
	for range length {
		best := 0
		for i := range current {
			current[i] += float64(weights[i]) / float64(total)
			if current[i] > current[best]+1e-9 {
				best = i
			}
		}
		current[best]--
		out = append(out, index[best])
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (r *roundRobin) next(uint64, int) int {
	return r.schedule[(r.at.Add(1)-1)%uint64(len(r.schedule))]
}

func (r *roundRobin) members() []int { return r.index }

// random chooses by weight.
type random struct {
	index []int
	sums  []uint64 // nil: all weights are equal
	total uint64
}

func newRandom(hosts []*Host, index []int) *random {
	r := &random{index: index}
	even := true
	for _, h := range index {
		w := weightOf(hosts[h].Endpoint())
		even = even && w == weightOf(hosts[index[0]].Endpoint())
		r.total += uint64(w)
		r.sums = append(r.sums, r.total)
	}
	if even {
		r.sums = nil
	}
	return r
}

func (r *random) next(uint64, int) int {
	if r.sums == nil {
		return r.index[rand.IntN(len(r.index))]
	}
	v := rand.Uint64N(r.total)
	i, _ := slices.BinarySearchFunc(r.sums, v, func(sum, v uint64) int {
		if sum <= v {
			return -1
		}
		return 1
	})
	return r.index[i]
}

func (r *random) members() []int { return r.index }

// leastRequest takes the less busy of two (Mitzenmacher, The Power of Two Choices).
type leastRequest struct {
	hosts []*Host
	index []int
}

func (l *leastRequest) next(uint64, int) int {
	n := len(l.index)
	if n == 1 {
		return l.index[0]
	}
	i := rand.IntN(n)
	j := rand.IntN(n - 1)
	if j >= i {
		j++
	}
	a, b := l.hosts[l.index[i]], l.hosts[l.index[j]]
	// (active+1)/weight, without a division.
	if (a.Active.Load()+1)*int64(weightOf(b.Endpoint())) <= (b.Active.Load()+1)*int64(weightOf(a.Endpoint())) {
		return l.index[i]
	}
	return l.index[j]
}

func (l *leastRequest) members() []int { return l.index }

// ring is consistent hashing (Karger et al.): the points of a host are spread over a
// circle, a key belongs to the next point. Every proxy builds the same ring.
type ring struct {
	index  []int
	points []point
}

type point struct {
	at   uint64
	host int
}

const (
	// pointsEach is how many points a host of weight one has. It does not depend on
	// the other hosts, so that keys stay where they are when one of them goes.
	pointsEach = 256
	maxRing    = 1 << 20
)

func newRing(hosts []*Host, index []int, minimum int) *ring {
	var total uint64
	divisor := 0
	for _, h := range index {
		w := weightOf(hosts[h].Endpoint())
		total += uint64(w)
		divisor = gcd(divisor, int(w))
	}
	each := uint64(pointsEach)
	units := total / uint64(divisor)
	if want := uint64(max(minimum, 0)); each*units < want {
		each = (want + units - 1) / units
	}
	each = max(min(each, maxRing/units), 1)
	r := &ring{index: index}
	for _, h := range index {
		e := hosts[h].Endpoint()
		for i := range each * uint64(weightOf(e)) / uint64(divisor) {
			r.points = append(r.points, point{xxhash.Sum64String(e.Address + "_" + strconv.FormatUint(i, 10)), h})
		}
	}
	slices.SortFunc(r.points, func(a, b point) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.host - b.host
	})
	return r
}

// next goes on around the circle to other hosts with each try.
func (r *ring) next(hash uint64, try int) int {
	n := len(r.points)
	i := sort.Search(n, func(i int) bool { return r.points[i].at >= hash }) % n
	host := r.points[i].host
	for skipped, step := 0, 1; skipped < try && step < n; step++ {
		if next := r.points[(i+step)%n].host; next != host {
			host = next
			skipped++
		}
	}
	return host
}

func (r *ring) members() []int { return r.index }

func isRing(p policy) bool {
	_, ok := p.(*ring)
	return ok
}

// Hash is the hash of a key for Choice.
func Hash(key string) uint64 { return xxhash.Sum64String(key) }
