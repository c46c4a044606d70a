package server

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/periplus/periplus/base"
)

// cadvisorMetrics answers /metrics/cadvisor: the metrics of cAdvisor that dashboards
// read, from the runtime's figures.
func (s *Server) cadvisorMetrics(w http.ResponseWriter, r *http.Request) {
	stats, err := s.config.Kubelet.Summary(r.Context(), false)
	failed := 0.0
	if err != nil {
		s.config.Log.Warn("metrics of containers cannot be read", base.KeyError, err)
		failed, stats = 1, &statsv1alpha1.Summary{}
	}
	pods := map[string]*corev1.Pod{}
	for _, p := range s.config.Kubelet.Pods() {
		pods[string(p.UID)] = p
	}
	var e exposition
	type of = func(*statsv1alpha1.ContainerStats) (float64, time.Time, bool)
	family := func(name, kind, help string, f of) {
		e.family(name, kind, help)
		for i := range stats.Pods {
			p := &stats.Pods[i]
			for j := range p.Containers {
				c := &p.Containers[j]
				if v, at, ok := f(c); ok {
					id, image := idAndImage(pods[p.PodRef.UID], c.Name)
					e.sample(fmt.Sprintf("{container=%q,id=%q,image=%q,name=%q,namespace=%q,pod=%q}", c.Name, "/kubepods/pod"+p.PodRef.UID+"/"+id, image, id, p.PodRef.Namespace, p.PodRef.Name), v, at)
				}
			}
		}
	}
	number := func(v *uint64, at time.Time) (float64, time.Time, bool) {
		if v == nil {
			return 0, at, false
		}
		return float64(*v), at, true
	}
	memory := func(f func(*statsv1alpha1.MemoryStats) *uint64) of {
		return func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) {
			if c.Memory == nil {
				return 0, time.Time{}, false
			}
			return number(f(c.Memory), c.Memory.Time.Time)
		}
	}
	disk := func(f func(*statsv1alpha1.FsStats) *uint64) of {
		return func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) {
			if c.Rootfs == nil {
				return 0, time.Time{}, false
			}
			return number(f(c.Rootfs), c.Rootfs.Time.Time)
		}
	}
	family("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) { return seconds(c.CPU) })
	family("container_memory_usage_bytes", "gauge", "Current memory usage in bytes, including all memory regardless of when it was accessed", memory(func(m *statsv1alpha1.MemoryStats) *uint64 { return m.UsageBytes }))
	family("container_memory_working_set_bytes", "gauge", "Current working set in bytes.", memory(func(m *statsv1alpha1.MemoryStats) *uint64 { return m.WorkingSetBytes }))
	family("container_memory_rss", "gauge", "Size of RSS in bytes.", memory(func(m *statsv1alpha1.MemoryStats) *uint64 { return m.RSSBytes }))
	family("container_memory_swap", "gauge", "Container swap usage in bytes.", func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) { return swap(c.Swap) })
	family("container_fs_usage_bytes", "gauge", "Number of bytes that are consumed by the container on this filesystem.", disk(func(f *statsv1alpha1.FsStats) *uint64 { return f.UsedBytes }))
	family("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds.", func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) {
		return float64(c.StartTime.Unix()), time.Time{}, c.StartTime.Unix() > 0
	})
	family("container_last_seen", "gauge", "Last time a container was seen by the exporter", func(c *statsv1alpha1.ContainerStats) (float64, time.Time, bool) {
		return float64(time.Now().Unix()), time.Time{}, c.CPU != nil
	})
	podFamily(&e, stats, "container_processes", "gauge", "Number of processes running inside the container.", "", func(p *statsv1alpha1.PodStats) (*uint64, time.Time) {
		if p.ProcessStats == nil {
			return nil, time.Time{}
		}
		return p.ProcessStats.ProcessCount, time.Time{}
	})
	for _, n := range []struct {
		name, help string
		of         func(*statsv1alpha1.NetworkStats) *uint64
	}{
		{"container_network_receive_bytes_total", "Cumulative count of bytes received", func(n *statsv1alpha1.NetworkStats) *uint64 { return n.RxBytes }},
		{"container_network_receive_errors_total", "Cumulative count of errors encountered while receiving", func(n *statsv1alpha1.NetworkStats) *uint64 { return n.RxErrors }},
		{"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", func(n *statsv1alpha1.NetworkStats) *uint64 { return n.TxBytes }},
		{"container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting", func(n *statsv1alpha1.NetworkStats) *uint64 { return n.TxErrors }},
	} {
		podFamily(&e, stats, n.name, "counter", n.help, "eth0", func(p *statsv1alpha1.PodStats) (*uint64, time.Time) {
			if p.Network == nil {
				return nil, time.Time{}
			}
			return n.of(p.Network), p.Network.Time.Time
		})
	}
	e.family("container_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise")
	e.sample("", failed, time.Time{})
	e.family("machine_cpu_cores", "gauge", "Number of logical CPU cores.")
	e.sample("", float64(runtime.NumCPU()), time.Time{})
	if m := stats.Node.Memory; m != nil && m.AvailableBytes != nil && m.WorkingSetBytes != nil {
		e.family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.")
		e.sample("", float64(*m.AvailableBytes+*m.WorkingSetBytes), time.Time{})
	}
	write(w, textFormat, e.Bytes())
}

// podFamily writes a metric of whole pods; port names the interface, if it is one's.
func podFamily(e *exposition, stats *statsv1alpha1.Summary, name, kind, help, port string, of func(*statsv1alpha1.PodStats) (*uint64, time.Time)) {
	e.family(name, kind, help)
	for i := range stats.Pods {
		p := &stats.Pods[i]
		v, at := of(p)
		if v == nil {
			continue
		}
		more := ""
		if port != "" {
			more = fmt.Sprintf(",interface=%q", port)
		}
		e.sample(fmt.Sprintf("{container=\"\",id=%q,image=\"\"%s,name=\"\",namespace=%q,pod=%q}", "/kubepods/pod"+p.PodRef.UID, more, p.PodRef.Namespace, p.PodRef.Name), float64(*v), at)
	}
}

// idAndImage are a container's identifier in the runtime and its image.
func idAndImage(pod *corev1.Pod, name string) (id, image string) {
	if pod == nil {
		return "", ""
	}
	st := &pod.Status
	for _, list := range [][]corev1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses, st.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return bareID(list[i].ContainerID), list[i].Image
			}
		}
	}
	return "", ""
}
