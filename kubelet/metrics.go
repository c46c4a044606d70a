package kubelet

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/kubelet/probe"
)

// metrics are the kubelet's own, under upstream's names. What somebody knows anyway is
// read when it is asked for.
type metrics struct {
	set, probes *metric.Set

	startedPods, startedContainers, containerErrors *metric.Counters
	sandboxErrors, evictions, images, rejections    *metric.Counters
	worker, podStart, sandbox                       *metric.Histograms
	probed                                          *prometheus.CounterVec
}

func newMetrics(k *Kubelet) *metrics {
	s, p := metric.NewSet(), metric.NewSet()
	m := &metrics{
		set: s, probes: p,
		startedPods:       s.Counter(metric.Alpha, "kubelet_started_pods_total", "Cumulative number of pods started"),
		startedContainers: s.Counter(metric.Alpha, "kubelet_started_containers_total", "Cumulative number of containers started", "container_type"),
		containerErrors:   s.Counter(metric.Alpha, "kubelet_started_containers_errors_total", "Cumulative number of errors when starting containers", "container_type", "code"),
		sandboxErrors:     s.Counter(metric.Alpha, "kubelet_run_podsandbox_errors_total", "Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.", "runtime_handler"),
		evictions:         s.Counter(metric.Alpha, "kubelet_evictions", "Cumulative number of pod evictions by eviction signal", "eviction_signal"),
		images:            s.Counter(metric.Alpha, "kubelet_image_garbage_collected_total", "Total number of images garbage collected by the kubelet, whether through disk usage or image age.", "reason"),
		rejections:        s.Counter(metric.Alpha, "kubelet_admission_rejections_total", "Cumulative number pod admission rejections by the Kubelet.", "reason"),
		worker:            s.Histogram(metric.Alpha, "kubelet_pod_worker_duration_seconds", "Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync", prometheus.DefBuckets, "operation_type"),
		podStart:          s.Histogram(metric.Alpha, "kubelet_pod_start_duration_seconds", "Duration in seconds from kubelet seeing a pod for the first time to the pod starting to run", []float64{0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}),
		sandbox:           s.Histogram(metric.Alpha, "kubelet_run_podsandbox_duration_seconds", "Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.", prometheus.DefBuckets, "runtime_handler"),
		probed:            p.CounterVec(metric.Beta, "prober_probe_total", "Cumulative number of a liveness, readiness or startup probe for a container by result.", "probe_type", "result", "container", "pod", "namespace", "pod_uid"),
	}
	name := s.Desc(metric.Alpha, "gauge", "kubelet_node_name", "The node's name. The count is always 1.", "node")
	pods := s.Desc(metric.Alpha, "gauge", "kubelet_running_pods", "Number of pods that have a running pod sandbox")
	containers := s.Desc(metric.Alpha, "gauge", "kubelet_running_containers", "Number of containers currently running", "container_state")
	active := s.Desc(metric.Alpha, "gauge", "kubelet_active_pods", "The number of pods the kubelet considers active and which are being considered when admitting new pods.", "static")
	s.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{name, pods, containers, active}, Read: func(out chan<- prometheus.Metric) {
		metric.Show(out, name, 1, k.cfg.NodeName)
		boxes, running := k.countRunning()
		metric.Show(out, pods, float64(boxes))
		metric.Show(out, containers, float64(running), "running")
		static := 0
		all := k.active()
		for _, w := range all {
			if pod := w.admittedPod(); pod != nil && isStatic(pod) {
				static++
			}
		}
		metric.Show(out, active, float64(static), "true")
		metric.Show(out, active, float64(len(all)-static), "")
	}})
	k.defineVolumes(s)
	return m
}

// countRunning counts ready sandboxes and running containers.
func (k *Kubelet) countRunning() (sandboxes, containers int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.workers {
		w.mu.Lock()
		if w.boxID != "" {
			sandboxes++
		}
		containers += len(w.live)
		w.mu.Unlock()
	}
	return sandboxes, containers
}

// defineVolumes shows the claims of pods, as /stats/summary does.
func (k *Kubelet) defineVolumes(s *metric.Set) {
	desc := func(name, help string) *prometheus.Desc {
		return s.Desc(metric.Alpha, "gauge", "kubelet_volume_stats_"+name, help, "namespace", "persistentvolumeclaim")
	}
	list := []*prometheus.Desc{
		desc("capacity_bytes", "Capacity in bytes of the volume"), desc("available_bytes", "Number of available bytes in the volume"),
		desc("used_bytes", "Number of used bytes in the volume"), desc("inodes", "Maximum number of inodes in the volume"),
		desc("inodes_free", "Number of free inodes in the volume"), desc("inodes_used", "Number of used inodes in the volume"),
	}
	s.MustRegister(&metric.Reading{Descs: list, Read: func(out chan<- prometheus.Metric) {
		v, ok := k.cfg.Volumes.(volumeUsage)
		if !ok {
			return
		}
		seen := map[string]bool{}
		for _, w := range k.active() {
			pod := w.admittedPod()
			if pod == nil || !hasClaims(pod) {
				continue
			}
			usage, _ := v.Usage(pod.UID)
			for i := range usage {
				u := &usage[i]
				claim := claimOf(pod, u.Volume)
				if claim == "" || seen[pod.Namespace+"/"+claim] {
					continue
				}
				seen[pod.Namespace+"/"+claim] = true
				for j, value := range []uint64{u.Capacity, u.Available, u.Used, u.Space.Inodes, u.InodesFree, u.Space.Inodes - min(u.Space.Inodes, u.InodesFree)} {
					metric.Show(out, list[j], float64(value), pod.Namespace, claim)
				}
			}
		}
	}})
}

func hasClaims(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].PersistentVolumeClaim != nil || pod.Spec.Volumes[i].Ephemeral != nil {
			return true
		}
	}
	return false
}

// claimOf is the claim behind a pod's volume, "" if it is none.
func claimOf(pod *corev1.Pod, volume string) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.Name != volume:
		case v.PersistentVolumeClaim != nil:
			return v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			return pod.Name + "-" + v.Name
		}
	}
	return ""
}

// Metrics answers /metrics and /metrics/probes. others are what else of the process is
// shown at /metrics.
func (k *Kubelet) Metrics(others ...prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	all := append(prometheus.Gatherers{k.metrics.set}, others...)
	mux.Handle("/metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{}))
	mux.Handle("/metrics/probes", promhttp.HandlerFor(k.metrics.probes, promhttp.HandlerOpts{}))
	return mux
}

// kindOf is a container's type in labels.
func kindOf(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return "init_container"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return "ephemeral_container"
		}
	}
	return "container"
}

// synced notes how long a sync of a pod took.
func (m *metrics) synced(first bool, began time.Time) {
	kind := "sync"
	if first {
		kind = "create"
	}
	m.worker.Of(metric.Labels{kind}).Observe(time.Since(began).Seconds())
}

// probe counts the result of a probe.
func (m *metrics) probe(pod *corev1.Pod, container string, kind probe.Kind, result string) {
	m.probed.WithLabelValues(string(kind), result, container, pod.Name, pod.Namespace, string(pod.UID)).Inc()
}

// forget drops the series of a pod that is gone.
func (m *metrics) forget(uid types.UID) {
	m.probed.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
}
