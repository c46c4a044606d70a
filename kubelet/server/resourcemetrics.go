package server

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/periplus/periplus/base"
)

// textFormat is the content type of Prometheus' text format.
const textFormat = "text/plain; version=0.0.4; charset=utf-8"

// resourceMetrics answers /metrics/resource with what metrics collectors read
// (KEP-1206): the metrics of upstream's kubelet, in its order, each with the time at
// which it was read.
func (s *Server) resourceMetrics(w http.ResponseWriter, r *http.Request) {
	failed := 0.0
	stats, err := s.config.Kubelet.ResourceStats(r.Context())
	if err != nil {
		s.config.Log.Warn("resource metrics cannot be read", base.KeyError, err)
		failed, stats = 1, &statsv1alpha1.Summary{}
	}
	var out exposition
	out.containers(stats, "container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds",
		func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) { return seconds(c.CPU) })
	out.containers(stats, "container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes",
		func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) { return workingSet(c.Memory) })
	out.containers(stats, "container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds",
		func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) {
			return float64(c.StartTime.UnixNano()) / float64(time.Second), time.Time{}, c.StartTime.Unix() > 0
		})
	out.containers(stats, "container_swap_usage_bytes", "gauge", "Current amount of the container swap usage in bytes. Reported only on non-windows systems",
		func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) { return swap(c.Swap) })
	out.node(stats, "node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds",
		func(n *statsv1alpha1.NodeStats) (float64, time.Time, bool) { return seconds(n.CPU) })
	out.node(stats, "node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes",
		func(n *statsv1alpha1.NodeStats) (float64, time.Time, bool) { return workingSet(n.Memory) })
	out.node(stats, "node_swap_usage_bytes", "gauge", "Current swap usage of the node in bytes. Reported only on non-windows systems",
		func(n *statsv1alpha1.NodeStats) (float64, time.Time, bool) { return swap(n.Swap) })
	out.pods(stats, "pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the pod in core-seconds",
		func(p *statsv1alpha1.PodStats) (float64, time.Time, bool) { return seconds(p.CPU) })
	out.pods(stats, "pod_memory_working_set_bytes", "gauge", "Current working set of the pod in bytes",
		func(p *statsv1alpha1.PodStats) (float64, time.Time, bool) { return workingSet(p.Memory) })
	out.family("resource_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise")
	out.sample("", failed, time.Time{})
	write(w, textFormat, out.Bytes())
}

func seconds(c *statsv1alpha1.CPUStats) (float64, time.Time, bool) {
	if c == nil || c.UsageCoreNanoSeconds == nil {
		return 0, time.Time{}, false
	}
	return float64(*c.UsageCoreNanoSeconds) / float64(time.Second), c.Time.Time, true
}

func workingSet(m *statsv1alpha1.MemoryStats) (float64, time.Time, bool) {
	if m == nil || m.WorkingSetBytes == nil {
		return 0, time.Time{}, false
	}
	return float64(*m.WorkingSetBytes), m.Time.Time, true
}

func swap(s *statsv1alpha1.SwapStats) (float64, time.Time, bool) {
	if s == nil || s.SwapUsageBytes == nil {
		return 0, time.Time{}, false
	}
	return float64(*s.SwapUsageBytes), s.Time.Time, true
}

// An exposition is metrics in Prometheus' text format. A family without samples is left out.
type exposition struct {
	bytes.Buffer
	head string // of the family that has no sample yet
	name string
}

func (e *exposition) family(name, kind, help string) {
	e.name = name
	e.head = fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample adds a value; labels are "" or {…}.
func (e *exposition) sample(labels string, value float64, at time.Time) {
	e.WriteString(e.head)
	e.head = ""
	e.WriteString(e.name)
	e.WriteString(labels)
	e.WriteByte(' ')
	e.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	if !at.IsZero() {
		e.WriteByte(' ')
		e.WriteString(strconv.FormatInt(at.UnixMilli(), 10))
	}
	e.WriteByte('\n')
}

func (e *exposition) containers(s *statsv1alpha1.Summary, name, kind, help string, of func(*statsv1alpha1.ContainerStats) (float64, time.Time, bool)) {
	e.family(name, kind, help)
	for i := range s.Pods {
		p := &s.Pods[i]
		for j := range p.Containers {
			c := &p.Containers[j]
			if value, at, ok := of(c); ok {
				e.sample(fmt.Sprintf("{container=%q,namespace=%q,pod=%q}", c.Name, p.PodRef.Namespace, p.PodRef.Name), value, at)
			}
		}
	}
}

func (e *exposition) pods(s *statsv1alpha1.Summary, name, kind, help string, of func(*statsv1alpha1.PodStats) (float64, time.Time, bool)) {
	e.family(name, kind, help)
	for i := range s.Pods {
		p := &s.Pods[i]
		if value, at, ok := of(p); ok {
			e.sample(fmt.Sprintf("{namespace=%q,pod=%q}", p.PodRef.Namespace, p.PodRef.Name), value, at)
		}
	}
}

func (e *exposition) node(s *statsv1alpha1.Summary, name, kind, help string, of func(*statsv1alpha1.NodeStats) (float64, time.Time, bool)) {
	e.family(name, kind, help)
	if value, at, ok := of(&s.Node); ok {
		e.sample("", value, at)
	}
}
