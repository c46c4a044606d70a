package telemetry

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/mesh"
)

// buckets are the upper bounds of all of Istio's histograms.
var buckets = []float64{0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 600000, 1800000, 3600000}

// Sides of a connection.
const (
	// ReporterSource is the client's sidecar.
	ReporterSource = "source"
	// ReporterDestination is the server's.
	ReporterDestination = "destination"
)

// Labels are what all standard metrics have.
type Labels struct {
	Reporter             string
	Source, Destination  mesh.Workload
	SourcePrincipal      string
	DestinationPrincipal string
	// Service is that which was called.
	Service, ServiceName, ServiceNamespace string
	Protocol                               string // http, grpc, tcp
	Code                                   int    // of requests
	GRPCStatus                             string
	Flags                                  string
	Security                               string // mutual_tls, none, unknown
}

// Metrics holds the series of one proxy.
type Metrics struct {
	mu     sync.RWMutex // guards series
	series map[Labels]*series
}

// New returns empty metrics.
func New() *Metrics { return &Metrics{series: map[Labels]*series{}} }

// A series is all that is counted under the same labels.
type series struct {
	kept      bool // it is among those of the Metrics
	count     atomic.Uint64
	durations histogram
	received  histogram
	sent      histogram

	opened, closed       atomic.Uint64
	tcpReceived, tcpSent atomic.Uint64
}

type histogram struct {
	counts [20]atomic.Uint64 // one for each bucket, and one beyond
	sum    atomic.Uint64     // in thousandths
}

func (h *histogram) observe(v float64) {
	i, _ := slices.BinarySearch(buckets, v)
	h.counts[i].Add(1)
	h.sum.Add(uint64(v * 1000))
}

// earlyRequests is how many requests of a series are early. Requests that follow each
// other closely end in any order, at either end of a connection: the first at one end
// is among the first few at the other.
const earlyRequests = 4

// maxSeries bounds the memory: what is beyond it is not counted.
const maxSeries = 10000

func (m *Metrics) of(l *Labels) *series {
	m.mu.RLock()
	s := m.series[*l]
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s = m.series[*l]; s == nil {
		s = &series{kept: len(m.series) < maxSeries}
		if s.kept {
			m.series[*l] = s
		}
	}
	return s
}

// Request counts one request; early says that it is one of the first of its series.
func (m *Metrics) Request(l *Labels, d time.Duration, received, sent int64) (early bool) {
	s := m.of(l)
	early = s.count.Add(1) <= earlyRequests && s.kept
	s.durations.observe(float64(d) / float64(time.Millisecond))
	s.received.observe(float64(received))
	s.sent.observe(float64(sent))
	return early
}

// Opened counts a connection of TCP that begins.
func (m *Metrics) Opened(l *Labels) {
	s := m.of(l)
	s.opened.Add(1)
}

// Closed counts one that has ended.
func (m *Metrics) Closed(l *Labels, received, sent int64) {
	s := m.of(l)
	s.closed.Add(1)
	s.tcpReceived.Add(uint64(max(received, 0)))
	s.tcpSent.Add(uint64(max(sent, 0)))
}

// Write writes all series in Prometheus' text format.
func (m *Metrics) Write(out io.Writer) error {
	w := bufio.NewWriter(out)
	m.mu.RLock()
	all := make([]struct {
		text string
		tcp  bool
		*series
	}, 0, len(m.series))
	for l, s := range m.series {
		all = append(all, struct {
			text string
			tcp  bool
			*series
		}{l.text(), l.Protocol == "tcp", s})
	}
	m.mu.RUnlock()
	slices.SortFunc(all, func(a, b struct {
		text string
		tcp  bool
		*series
	}) int {
		return strings.Compare(a.text, b.text)
	})
	counter := func(name string, tcp bool, value func(*series) uint64) {
		started := false
		for _, s := range all {
			if s.tcp != tcp {
				continue
			}
			if !started {
				fmt.Fprintf(w, "# TYPE %s counter\n", name)
				started = true
			}
			fmt.Fprintf(w, "%s{%s} %d\n", name, s.text, value(s.series))
		}
	}
	distribution := func(name string, value func(*series) *histogram) {
		started := false
		for _, s := range all {
			if s.tcp {
				continue
			}
			if !started {
				fmt.Fprintf(w, "# TYPE %s histogram\n", name)
				started = true
			}
			h := value(s.series)
			total := uint64(0)
			for i, le := range buckets {
				total += h.counts[i].Load()
				fmt.Fprintf(w, "%s_bucket{%s,le=%q} %d\n", name, s.text, strconv.FormatFloat(le, 'g', -1, 64), total)
			}
			total += h.counts[len(buckets)].Load()
			fmt.Fprintf(w, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, s.text, total)
			fmt.Fprintf(w, "%s_sum{%s} %s\n", name, s.text, strconv.FormatFloat(float64(h.sum.Load())/1000, 'g', -1, 64))
			fmt.Fprintf(w, "%s_count{%s} %d\n", name, s.text, total)
		}
	}
	counter("istio_requests_total", false, func(s *series) uint64 { return s.count.Load() })
	distribution("istio_request_duration_milliseconds", func(s *series) *histogram { return &s.durations })
	distribution("istio_request_bytes", func(s *series) *histogram { return &s.received })
	distribution("istio_response_bytes", func(s *series) *histogram { return &s.sent })
	counter("istio_tcp_connections_opened_total", true, func(s *series) uint64 { return s.opened.Load() })
	counter("istio_tcp_connections_closed_total", true, func(s *series) uint64 { return s.closed.Load() })
	counter("istio_tcp_received_bytes_total", true, func(s *series) uint64 { return s.tcpReceived.Load() })
	counter("istio_tcp_sent_bytes_total", true, func(s *series) uint64 { return s.tcpSent.Load() })
	return w.Flush()
}

// text is the labels as Prometheus writes them.
func (l *Labels) text() string {
	var b strings.Builder
	add := func(name, value string) {
		if value == "" {
			value = "unknown"
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(strconv.Quote(value))
	}
	add("reporter", l.Reporter)
	add("source_workload", l.Source.Name)
	add("source_canonical_service", l.Source.CanonicalName)
	add("source_canonical_revision", latest(l.Source.CanonicalRevision))
	add("source_workload_namespace", l.Source.Namespace)
	add("source_principal", l.SourcePrincipal)
	add("source_app", l.Source.App)
	add("source_version", l.Source.Version)
	add("source_cluster", l.Source.Cluster)
	add("destination_workload", l.Destination.Name)
	add("destination_workload_namespace", l.Destination.Namespace)
	add("destination_principal", l.DestinationPrincipal)
	add("destination_app", l.Destination.App)
	add("destination_version", l.Destination.Version)
	add("destination_service", l.Service)
	add("destination_canonical_service", l.Destination.CanonicalName)
	add("destination_canonical_revision", latest(l.Destination.CanonicalRevision))
	add("destination_service_name", l.ServiceName)
	add("destination_service_namespace", l.ServiceNamespace)
	add("destination_cluster", l.Destination.Cluster)
	add("request_protocol", l.Protocol)
	if l.Protocol != "tcp" {
		add("response_code", strconv.Itoa(l.Code))
		if l.GRPCStatus != "" {
			add("grpc_response_status", l.GRPCStatus)
		} else {
			b.WriteString(`,grpc_response_status=""`)
		}
	}
	add("response_flags", l.Flags)
	add("connection_security_policy", l.Security)
	return b.String()
}

func latest(v string) string {
	if v == "" {
		return "latest"
	}
	return v
}
