package balance

import (
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/l7"
)

// A Host is an endpoint at run time.
type Host struct {
	endpoint atomic.Pointer[l7.Endpoint]
	// Active is the number of requests under way: for LeastRequest.
	Active atomic.Int64

	outlier outlier
}

// NewHost returns the run-time state of an endpoint.
func NewHost(e *l7.Endpoint) *Host {
	h := &Host{}
	h.endpoint.Store(e)
	return h
}

// Endpoint returns what the newest snapshot says about the host.
func (h *Host) Endpoint() *l7.Endpoint { return h.endpoint.Load() }

// Update replaces what is known about the host; its address stays.
func (h *Host) Update(e *l7.Endpoint) { h.endpoint.Store(e) }

// Ejected reports whether outlier detection keeps the host out at this time.
func (h *Host) Ejected(now time.Time) bool {
	until := h.outlier.until.Load()
	return until != 0 && now.UnixNano() < until
}

func weightOf(e *l7.Endpoint) uint32 { return max(e.Weight, 1) }
