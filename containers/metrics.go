package containers

import (
	"context"
	"path"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/mount"
	"github.com/periplus/periplus/linux/netstat"
)

// identity are the labels of every metric, in this order.
var identity = []string{"container", "id", "image", "name", "namespace", "pod"}

// A metric is one line of the kubelet's /metrics/cadvisor. The CRI carries whole
// numbers only: seconds are cut off.
type metric struct {
	name, help string
	kind       runtimeapi.MetricType
	labels     []string // besides identity
	values     func(*sample) []point
}

// A point is a value with those labels.
type point struct {
	value  uint64
	labels []string
}

// A sample is what one container, or a pod, is measured by.
type sample struct {
	now            time.Time
	cpu            cgroup.Stats
	detail         cgroup.Detail
	pids           []int
	files, sockets uint64
	written        snapshot.Usage
	fs             mount.Space
	device         string
	interfaces     []netstat.Interface
	started        time.Time
}

// ListMetricDescriptors describes the metrics of ListPodSandboxMetrics.
func (r *Runtime) ListMetricDescriptors(context.Context, *runtimeapi.ListMetricDescriptorsRequest) (*runtimeapi.ListMetricDescriptorsResponse, error) {
	resp := &runtimeapi.ListMetricDescriptorsResponse{}
	for _, m := range slices.Concat(containerMetrics, podMetrics) {
		resp.Descriptors = append(resp.Descriptors, &runtimeapi.MetricDescriptor{
			Name: m.name, Help: m.help, LabelKeys: slices.Concat(identity, m.labels),
		})
	}
	return resp, nil
}

// ListPodSandboxMetrics measures all pods that are ready, with their running containers.
func (r *Runtime) ListPodSandboxMetrics(ctx context.Context, _ *runtimeapi.ListPodSandboxMetricsRequest) (*runtimeapi.ListPodSandboxMetricsResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	resp := &runtimeapi.ListPodSandboxMetricsResponse{}
	fs, _ := mount.Free(r.cfg.Snapshots.Root()) // zero when it cannot be told
	for _, s := range r.allSandboxes() {
		if s.phase() != phaseReady {
			continue
		}
		resp.PodMetrics = append(resp.PodMetrics, r.podMetrics(ctx, s, fs))
	}
	return resp, nil
}

func (r *Runtime) podMetrics(ctx context.Context, s *podSandbox, fs mount.Space) *runtimeapi.PodSandboxMetrics {
	out := &runtimeapi.PodSandboxMetrics{PodSandboxId: s.rec.ID}
	meta := s.config.GetMetadata()
	pid := 0
	for _, c := range r.containersOf(s.rec.ID) {
		state, p := c.snapshotState()
		if state != runtimeapi.ContainerState_CONTAINER_RUNNING {
			continue
		}
		pid = p
		labels := []string{c.config.GetMetadata().GetName(), c.rec.CgroupPath, c.rec.Image, c.rec.ID, meta.GetNamespace(), meta.GetName()}
		out.ContainerMetrics = append(out.ContainerMetrics, &runtimeapi.ContainerMetrics{
			ContainerId: c.rec.ID, Metrics: measure(containerMetrics, r.sampleOf(ctx, c, fs), labels),
		})
	}
	if pid != 0 && !s.rec.Sandbox.HostNetwork {
		sample := &sample{now: time.Now()}
		if list, err := netstat.Read("/proc/" + strconv.Itoa(pid) + "/net/dev"); err == nil {
			sample.interfaces = slices.DeleteFunc(list, func(i netstat.Interface) bool { return i.Name == "lo" })
		}
		id := path.Join("/", s.config.GetLinux().GetCgroupParent())
		out.Metrics = measure(podMetrics, sample, []string{"", id, "", s.rec.ID, meta.GetNamespace(), meta.GetName()})
	}
	return out
}

func (r *Runtime) sampleOf(ctx context.Context, c *container, fs mount.Space) *sample {
	s := &sample{now: time.Now(), fs: fs, device: r.cfg.Snapshots.Root()}
	c.mu.Lock()
	s.started = c.startedAt
	c.mu.Unlock()
	s.cpu, _ = cgroup.Read(c.rec.CgroupPath) // gone: all zero
	s.detail = cgroup.ReadDetail(c.rec.CgroupPath)
	s.pids = cgroup.Processes(c.rec.CgroupPath)
	s.files, s.sockets = cgroup.Descriptors(s.pids)
	s.written, _ = r.cfg.Snapshots.Usage(ctx, c.rec.ID)
	return s
}

// measure makes the metrics of a sample.
func measure(list []metric, s *sample, labels []string) []*runtimeapi.Metric {
	var out []*runtimeapi.Metric
	for _, m := range list {
		for _, p := range m.values(s) {
			out = append(out, &runtimeapi.Metric{
				Name: m.name, MetricType: m.kind, LabelValues: slices.Concat(labels, p.labels), Value: number(p.value),
			})
		}
	}
	return out
}
