package balance

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/periplus/periplus/l7"
)

// A Set is the hosts of a cluster at one time.
type Set struct {
	hosts []*Host
	tiers []tier // by priority, the best first
	// Ejections counts the hosts that outlier detection has ejected; zero saves looking.
	outliers *Outliers
}

// A tier is the hosts of one priority.
type tier struct {
	good policy // those that the configuration calls healthy; nil: none
	// all is every host of the tier: what is left when none is good.
	all []int
}

// A policy returns candidates; they may be called by many goroutines.
type policy interface {
	// next returns the index of a host. try is 0 for the first candidate of a request.
	next(hash uint64, try int) int
	// members are all that next may return.
	members() []int
}

// A Choice is what a request brings to its balancer.
type Choice struct {
	// Hash is the key of RingHash; without Hashed it is random.
	Hash   uint64
	Hashed bool
	// Skip leaves out hosts that were tried already; nil: none.
	Skip func(host int) bool
}

// NewSet returns the hosts under a policy. outliers may be nil.
func NewSet(c *l7.Cluster, hosts []*Host, outliers *Outliers) *Set {
	s := &Set{hosts: hosts, outliers: outliers}
	byPriority := map[int][]int{}
	for i, h := range hosts {
		p := h.Endpoint().Priority
		byPriority[p] = append(byPriority[p], i)
	}
	priorities := make([]int, 0, len(byPriority))
	for p := range byPriority {
		priorities = append(priorities, p)
	}
	slices.Sort(priorities)
	for _, p := range priorities {
		t := tier{all: byPriority[p]}
		var good []int
		for _, i := range t.all {
			if hosts[i].Endpoint().Health == l7.Healthy {
				good = append(good, i)
			}
		}
		if len(good) > 0 {
			t.good = newPolicy(c, hosts, good)
		}
		s.tiers = append(s.tiers, t)
	}
	return s
}

func newPolicy(c *l7.Cluster, hosts []*Host, members []int) policy {
	switch c.Balancing {
	case l7.LeastRequest:
		return &leastRequest{hosts: hosts, index: members}
	case l7.Random:
		return newRandom(hosts, members)
	case l7.RingHash:
		return newRing(hosts, members, c.MinimumRingSize)
	default:
		return newRoundRobin(hosts, members)
	}
}

// Len is the number of hosts.
func (s *Set) Len() int { return len(s.hosts) }

// candidates is how often a policy is asked before the hosts are looked at one by one.
const candidates = 4

// Pick returns the index of a host, or -1 if there is none. Hosts that are ejected,
// unhealthy or skipped are returned only if there are no others.
func (s *Set) Pick(now time.Time, c *Choice) int {
	if len(s.hosts) == 0 {
		return -1
	}
	hash := c.Hash
	if !c.Hashed {
		hash = 0
	}
	for i := range s.tiers {
		t := &s.tiers[i]
		if t.good == nil {
			continue
		}
		if !c.Hashed && hash == 0 && isRing(t.good) {
			hash = rand.Uint64() | 1
		}
		for try := range candidates {
			if h := t.good.next(hash, try); s.usable(now, h, c) {
				return h
			}
		}
		if h := s.first(t.good.members(), func(h int) bool { return s.usable(now, h, c) }); h >= 0 {
			return h
		}
	}
	// Nobody is good: better a tried one, better an ejected or draining one, than none.
	for i := range s.tiers {
		if h := s.first(s.tiers[i].all, func(h int) bool {
			return s.hosts[h].Endpoint().Health != l7.Unhealthy && (c.Skip == nil || !c.Skip(h))
		}); h >= 0 {
			return h
		}
	}
	if h := s.first(s.tiers[0].all, func(h int) bool { return c.Skip == nil || !c.Skip(h) }); h >= 0 {
		return h
	}
	return s.first(s.tiers[0].all, func(int) bool { return true })
}

func (s *Set) usable(now time.Time, h int, c *Choice) bool {
	if s.outliers != nil && s.outliers.any.Load() && s.hosts[h].Ejected(now) {
		return false
	}
	return c.Skip == nil || !c.Skip(h)
}

// first returns a member that is ok, beginning anywhere.
func (s *Set) first(members []int, ok func(int) bool) int {
	n := len(members)
	if n == 0 {
		return -1
	}
	from := rand.IntN(n)
	for i := range n {
		if h := members[(from+i)%n]; ok(h) {
			return h
		}
	}
	return -1
}
