package balance

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/l7"
)

// Outliers detects the failing hosts of one cluster.
type Outliers struct {
	config l7.OutlierDetection
	// any is set as long as some host may be ejected.
	any atomic.Bool

	mu    sync.Mutex // guards hosts and decisions
	hosts []*Host
	// Ejected is told of each ejection; nil: nobody.
	Ejected func(e *l7.Endpoint, until time.Time, times int)
}

// outlier is what is counted about one host.
type outlier struct {
	failures atomic.Int32 // 5xx and connection errors in a row
	gateway  atomic.Int32 // of those: 502, 503, 504 and connection errors
	until    atomic.Int64 // ejected until, in Unix nanoseconds; 0: not ejected
	times    int32        // ejections so far; guarded by Outliers.mu
	last     time.Time    // when the last one ended; guarded by Outliers.mu
}

// NewOutliers returns a detector with the defaults filled in.
func NewOutliers(c *l7.OutlierDetection) *Outliers {
	o := &Outliers{config: *c}
	if o.config.Interval == 0 {
		o.config.Interval = 10 * time.Second
	}
	if o.config.BaseEjection == 0 {
		o.config.BaseEjection = 30 * time.Second
	}
	if o.config.MaxEjection == 0 {
		o.config.MaxEjection = max(300*time.Second, o.config.BaseEjection)
	}
	if o.config.MaxPercent == 0 {
		o.config.MaxPercent = 10
	}
	return o
}

// SetHosts says which hosts the percentages are about.
func (o *Outliers) SetHosts(hosts []*Host) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hosts = hosts
}

// Result reports how a try at a host ended: the status of its response, or 0 for a
// connection error, a reset or a timeout.
func (o *Outliers) Result(h *Host, status int) {
	failed := status == 0 || status >= 500
	if !failed {
		// The usual case must not write to shared memory.
		if h.outlier.failures.Load() != 0 {
			h.outlier.failures.Store(0)
		}
		if h.outlier.gateway.Load() != 0 {
			h.outlier.gateway.Store(0)
		}
		return
	}
	n := h.outlier.failures.Add(1)
	g := int32(0)
	if status == 0 || status >= 502 && status <= 504 {
		g = h.outlier.gateway.Add(1)
	} else {
		h.outlier.gateway.Store(0)
	}
	c := &o.config
	if c.Consecutive5xx > 0 && int(n) >= c.Consecutive5xx || c.ConsecutiveGatewayErrors > 0 && int(g) >= c.ConsecutiveGatewayErrors {
		o.eject(h, time.Now())
	}
}

func (o *Outliers) eject(h *Host, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.Ejected(now) {
		return
	}
	ejected, healthy := 0, 0
	for _, other := range o.hosts {
		if other.Ejected(now) {
			ejected++
		} else if other.Endpoint().Health == l7.Healthy {
			healthy++
		}
	}
	total := len(o.hosts)
	if total == 0 || ejected > 0 && (ejected+1)*100 > o.config.MaxPercent*total {
		return
	}
	if o.config.MinHealthPercent > 0 && healthy*100 < o.config.MinHealthPercent*total {
		return
	}
	s := &h.outlier
	// Each interval without an ejection takes one away.
	if s.times > 0 {
		quiet := int32(min(now.Sub(s.last)/o.config.Interval, 1<<20))
		s.times = max(s.times-max(quiet, 0), 0)
	}
	s.times++
	until := now.Add(min(o.config.BaseEjection*time.Duration(s.times), o.config.MaxEjection))
	s.last = until
	s.until.Store(until.UnixNano())
	s.failures.Store(0)
	s.gateway.Store(0)
	o.any.Store(true)
	if o.Ejected != nil {
		o.Ejected(h.Endpoint(), until, int(s.times))
	}
}
