package upstream

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
)

// Config is what connections need.
type Config struct {
	Dial func(ctx context.Context, c *l7.Cluster, address string) (net.Conn, error)
	Log  *slog.Logger
}

// A Table is all clusters.
type Table struct {
	cfg Config

	mu       sync.Mutex // guards clusters; requests use the maps that Apply returns
	clusters map[string]*Cluster
}

// NewTable returns an empty table.
func NewTable(cfg Config) *Table { return &Table{cfg: cfg, clusters: map[string]*Cluster{}} }

// Apply makes the clusters of a snapshot, keeping what is still in it, and returns
// them by name. The map is not changed afterwards.
func (t *Table) Apply(clusters map[string]*l7.Cluster, endpoints map[string][]*l7.Endpoint) map[string]*Cluster {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]*Cluster, len(clusters))
	for name, config := range clusters {
		c := t.clusters[name]
		if c == nil {
			c = &Cluster{name: name, cfg: &t.cfg}
		}
		c.update(config, endpoints[name])
		next[name] = c
	}
	for name, c := range t.clusters {
		if next[name] == nil {
			c.retire()
		}
	}
	t.clusters = next
	return maps.Clone(next)
}

// Close closes idle connections, and those in use when their requests have ended.
func (t *Table) Close() { t.Apply(nil, nil) }

// update takes over a new configuration; what has not changed stays.
func (c *Cluster) update(config *l7.Cluster, endpoints []*l7.Endpoint) {
	old := c.state.Load()
	if old != nil && old.config == config && slices.Equal(old.endpoints, endpoints) {
		return
	}
	s := &state{config: config, endpoints: endpoints}
	if old != nil && old.config == config {
		s.transport, s.outliers = old.transport, old.outliers
	} else {
		s.transport = newTransport(config)
		if config.Outlier != nil {
			if old != nil && old.outliers != nil && *old.config.Outlier == *config.Outlier {
				s.outliers = old.outliers
			} else {
				s.outliers = balance.NewOutliers(config.Outlier)
				s.outliers.Ejected = c.ejected
			}
		}
	}
	known := map[string]*host{}
	if old != nil {
		for _, h := range old.hosts {
			known[h.address] = h
		}
	}
	for _, e := range endpoints {
		// An address that is listed twice is two hosts.
		h := known[e.Address]
		if h == nil {
			h = newHost(c, e)
		} else {
			h.Update(e)
			delete(known, e.Address)
		}
		s.hosts = append(s.hosts, h)
		s.balanced = append(s.balanced, h.Host)
	}
	if s.outliers != nil {
		s.outliers.SetHosts(s.balanced)
	}
	s.set = balance.NewSet(config, s.balanced, s.outliers)
	c.state.Store(s)
	if old == nil {
		return
	}
	kept := map[*host]bool{}
	for _, h := range s.hosts {
		kept[h] = true
	}
	for _, h := range old.hosts {
		if !kept[h] {
			h.retire()
		}
	}
}

func (c *Cluster) ejected(e *l7.Endpoint, until time.Time, times int) {
	c.cfg.Log.Info("Endpoint fails and gets no requests for a while", "cluster", c.name, base.KeyAddress, e.Address,
		base.KeyDuration, time.Until(until).Round(time.Second).String(), "times", times)
}
