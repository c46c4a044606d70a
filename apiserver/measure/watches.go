package measure

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// watches are the metrics of watches and lists.
type watches struct {
	streams                   *metric.Family[*Stream]
	begins                    *metric.Histograms
	cutOff                    *metric.Counters
	cacheLists, cacheFetched  *metric.Counters
	cacheReturned             *metric.Counters
	lists, fetched, evaluated *metric.Counters
	returned                  *metric.Counters
	waited                    *metric.Histograms
	consistent                *metric.Counters
}

// A Stream counts what is sent in watches of one group version of a resource. A nil one
// counts nothing.
type Stream struct {
	events prometheus.Counter
	sizes  prometheus.Observer
}

// Sent counts an event of so many bytes.
func (s *Stream) Sent(size int) {
	if s != nil {
		s.events.Inc()
		s.sizes.Observe(float64(size))
	}
}

func newWatches(s *metric.Set) watches {
	version := []string{"group", "version", "resource"}
	of := []string{"group", "resource"}
	events := s.CounterVec(metric.Beta, "apiserver_watch_events_total", "Number of events sent in watch clients", version...)
	sizes := s.HistogramVec(metric.Beta, "apiserver_watch_events_sizes", "Watch event size distribution in bytes", prometheus.ExponentialBuckets(1024, 2.0, 8), version...)
	return watches{
		streams: metric.NewFamily(func(l metric.Labels) *Stream {
			return &Stream{events.WithLabelValues(l[:3]...), sizes.WithLabelValues(l[:3]...)}
		}),
		begins: s.Histogram(metric.Beta, "apiserver_watch_list_duration_seconds", "Response latency distribution in seconds for watch list requests broken by group, version, resource and scope.",
			append(slow[2:len(slow):len(slow)], 90, 120, 180, 300), "group", "version", "resource", "scope"),
		cutOff:        s.Counter(metric.Alpha, "apiserver_terminated_watchers_total", "Counter of watchers closed due to unresponsiveness broken by resource type.", of...),
		cacheLists:    s.Counter(metric.Alpha, "apiserver_cache_list_total", "Number of LIST requests served from watch cache", "group", "resource", "index"),
		cacheFetched:  s.Counter(metric.Alpha, "apiserver_cache_list_fetched_objects_total", "Number of objects read from watch cache in the course of serving a LIST request", "group", "resource", "index"),
		cacheReturned: s.Counter(metric.Alpha, "apiserver_cache_list_returned_objects_total", "Number of objects returned for a LIST request from watch cache", of...),
		lists:         s.Counter(metric.Alpha, "apiserver_storage_list_total", "Number of LIST requests served from storage", "group", "resource", "storage", "index"),
		fetched:       s.Counter(metric.Alpha, "apiserver_storage_list_fetched_objects_total", "Number of objects read from storage in the course of serving a LIST request", "group", "resource", "storage", "index"),
		evaluated:     s.Counter(metric.Alpha, "apiserver_storage_list_evaluated_objects_total", "Number of objects tested in the course of serving a LIST request from storage", "group", "resource", "storage"),
		returned:      s.Counter(metric.Alpha, "apiserver_storage_list_returned_objects_total", "Number of objects returned for a LIST request from storage", "group", "resource", "storage"),
		waited: s.Histogram(metric.Alpha, "apiserver_watch_cache_read_wait_seconds", "Histogram of time spent waiting for a watch cache to become fresh.",
			[]float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3}, of...),
		consistent: s.Counter(metric.Alpha, "apiserver_watch_cache_consistent_read_total", "Counter for consistent reads from cache.", "group", "resource", "success", "fallback"),
	}
}

// Stream is where the events of a watch are counted.
func (m *Metrics) Stream(group, version, resource string) *Stream {
	if m == nil {
		return nil
	}
	return m.streams.Of(metric.Labels{group, version, resource})
}

// WatchList counts how long a watch took until it had told what was there.
func (m *Metrics) WatchList(group, version, resource, scope string, took time.Duration) {
	if m != nil {
		m.begins.Of(metric.Labels{group, version, resource, scope}).Observe(took.Seconds())
	}
}

// CutOff counts a watcher that did not read what it was sent.
func (m *Metrics) CutOff(group, resource string) {
	if m != nil {
		m.cutOff.Of(metric.Labels{group, resource}).Inc()
	}
}

// Listed counts a list: from the watch cache or else from the store, of how many objects
// that were looked at how many were returned.
func (m *Metrics) Listed(group, resource string, cached bool, looked, returned int) {
	if m == nil {
		return
	}
	from := "etcd"
	if cached {
		from = "watchcache"
		m.cacheLists.Of(metric.Labels{group, resource}).Inc()
		m.cacheFetched.Of(metric.Labels{group, resource}).Add(float64(looked))
		m.cacheReturned.Of(metric.Labels{group, resource}).Add(float64(returned))
	}
	m.lists.Of(metric.Labels{group, resource, from}).Inc()
	m.fetched.Of(metric.Labels{group, resource, from}).Add(float64(looked))
	m.evaluated.Of(metric.Labels{group, resource, from}).Add(float64(looked))
	m.returned.Of(metric.Labels{group, resource, from}).Add(float64(returned))
}

// Fresh counts a read that waited until the watch cache was as new as the store; a
// version of its own if it asked for one.
func (m *Metrics) Fresh(group, resource string, newest, ok bool, took time.Duration) {
	if m == nil {
		return
	}
	if newest {
		m.consistent.Of(metric.Labels{group, resource, text(ok), "false"}).Inc()
	}
	m.waited.Of(metric.Labels{group, resource}).Observe(took.Seconds())
}
