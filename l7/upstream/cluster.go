package upstream

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
)

// A Cluster is a cluster at run time.
type Cluster struct {
	name  string
	cfg   *Config
	state atomic.Pointer[state]

	requests    atomic.Int64 // under way
	retries     atomic.Int64 // of those, tries after the first
	connections atomic.Int64 // open ones

	mu      sync.Mutex       // guards the following
	waiters []chan struct{}  // requests that wait for a connection
	direct  map[string]*host // of ClusterOriginalDestination, by address
}

// state is what one snapshot says.
type state struct {
	config    *l7.Cluster
	endpoints []*l7.Endpoint
	hosts     []*host
	balanced  []*balance.Host // of hosts
	set       *balance.Set
	outliers  *balance.Outliers
	transport *transport
}

// Errors of a cluster.
var (
	errNoEndpoint = errors.New("no healthy upstream")
	errOverflow   = errors.New("circuit breaker is open")
)

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.name }

// Config returns the newest configuration.
func (c *Cluster) Config() *l7.Cluster { return c.state.Load().config }

// Begin counts a request; false: the circuit breaker does not allow it. End must
// follow a Begin that was true.
func (c *Cluster) Begin() bool {
	limit := c.state.Load().config.Breaker.MaxRequests
	if n := c.requests.Add(1); limit > 0 && n > int64(limit) {
		c.requests.Add(-1)
		return false
	}
	return true
}

// End ends what Begin began.
func (c *Cluster) End() { c.requests.Add(-1) }

// BeginRetry counts a retry; false: the circuit breaker does not allow it.
func (c *Cluster) BeginRetry() bool {
	limit := c.state.Load().config.Breaker.MaxRetries
	if n := c.retries.Add(1); limit > 0 && n > int64(limit) {
		c.retries.Add(-1)
		return false
	}
	return true
}

// EndRetry ends what BeginRetry began.
func (c *Cluster) EndRetry() { c.retries.Add(-1) }

// pick chooses a host.
func (c *Cluster) pick(s *state, now time.Time, choice *balance.Choice, tried []*host, to netip.AddrPort) *host {
	if s.config.Kind == l7.ClusterOriginalDestination {
		return c.directHost(to)
	}
	if len(tried) > 0 {
		choice.Skip = func(i int) bool {
			return slices.Contains(tried, s.hosts[i])
		}
	}
	i := s.set.Pick(now, choice)
	if i < 0 {
		return nil
	}
	return s.hosts[i]
}

// maxDirect bounds the hosts that are remembered for original destinations.
const maxDirect = 1024

func (c *Cluster) directHost(to netip.AddrPort) *host {
	if !to.IsValid() {
		return nil
	}
	address := to.String()
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.direct[address]
	if h == nil {
		if len(c.direct) >= maxDirect {
			for a, old := range c.direct {
				if old.Active.Load() == 0 {
					delete(c.direct, a)
					go old.retire()
					break
				}
			}
		}
		if c.direct == nil {
			c.direct = map[string]*host{}
		}
		h = newHost(c, &l7.Endpoint{Address: address})
		c.direct[address] = h
	}
	return h
}

// openConnection counts a connection, after waiting if there are too many.
func (c *Cluster) openConnection(ctx context.Context, s *state, keep *host) error {
	limit := int64(s.config.Breaker.MaxConnections)
	if limit <= 0 {
		c.connections.Add(1)
		return nil
	}
	for {
		if c.connections.Add(1) <= limit {
			return nil
		}
		c.connections.Add(-1)
		// An idle connection to another endpoint makes room.
		if c.closeIdle(s, keep) {
			continue
		}
		c.mu.Lock()
		if c.connections.Load() < limit {
			c.mu.Unlock()
			continue
		}
		if len(c.waiters) >= s.config.Breaker.MaxPending {
			c.mu.Unlock()
			return &Failure{Overflow, errOverflow}
		}
		turn := make(chan struct{}, 1)
		c.waiters = append(c.waiters, turn)
		c.mu.Unlock()
		select {
		case <-turn:
			if keep.hasIdle() {
				return errIdleAgain
			}
		case <-ctx.Done():
			c.forget(turn)
			return &Failure{Timeout, ctx.Err()}
		}
	}
}

// errIdleAgain says that an idle connection has come back meanwhile.
var errIdleAgain = errors.New("there is an idle connection")

func (c *Cluster) forget(turn chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.waiters {
		if w == turn {
			c.waiters = append(c.waiters[:i], c.waiters[i+1:]...)
			return
		}
	}
	// It was told already: somebody else may have the turn.
	c.wakeLocked()
}

// wake lets one waiting request look again: a connection is idle or closed.
func (c *Cluster) wake() {
	if c.state.Load().config.Breaker.MaxConnections <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeLocked()
}

func (c *Cluster) wakeLocked() {
	if len(c.waiters) > 0 {
		c.waiters[0] <- struct{}{}
		c.waiters = c.waiters[1:]
	}
}

func (c *Cluster) closedConnection() {
	c.connections.Add(-1)
	c.wake()
}

func (c *Cluster) closeIdle(s *state, keep *host) bool {
	for _, h := range s.hosts {
		if h != keep && h.closeOneIdle() {
			return true
		}
	}
	return false
}

// retire closes what is idle, now and when it becomes so.
func (c *Cluster) retire() {
	for _, h := range c.state.Load().hosts {
		h.retire()
	}
	c.mu.Lock()
	direct := c.direct
	c.direct = nil
	c.mu.Unlock()
	for _, h := range direct {
		h.retire()
	}
}

// result tells outlier detection how a try ended.
func (c *Cluster) result(h *host, status int) {
	if o := c.state.Load().outliers; o != nil {
		o.Result(h.Host, status)
	}
}

// A Status is what is known about one endpoint, for status pages.
type Status struct {
	Endpoint *l7.Endpoint
	Active   int64
	Idle     int
	Ejected  bool
}

// Status returns the endpoints with their state.
func (c *Cluster) Status() []Status {
	now := time.Now()
	s := c.state.Load()
	out := make([]Status, 0, len(s.hosts))
	for _, h := range s.hosts {
		out = append(out, Status{Endpoint: h.Endpoint(), Active: h.Active.Load(), Idle: h.idleCount(), Ejected: h.Ejected(now)})
	}
	return out
}
