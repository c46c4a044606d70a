package flow

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// lazy is a histogram that is made with its first value: most schemas need few.
type lazy struct{ made func() prometheus.Observer }

func lazily(maker func() prometheus.Observer) prometheus.Observer { return lazy{sync.OnceValue(maker)} }

// Observe implements prometheus.Observer.
func (l lazy) Observe(v float64) { l.made().Observe(v) }
