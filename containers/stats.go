package containers

import (
	"context"
	"fmt"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/sandbox"
	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/netstat"
)

// A rate is of no less and of no more than this: what a container did an hour ago
// says nothing about now.
const (
	shortestRate = time.Second
	longestRate  = 2 * time.Minute
)

// usageHistory turns processor time into a rate: from one request to the next.
type usageHistory struct {
	mu   sync.Mutex
	last map[string]usageSample // guarded by mu
}

type usageSample struct {
	at    time.Time
	nanos uint64
	rate  uint64 // nanocores until then
	known bool   // whether there is a rate
}

func (h *usageHistory) rate(id string, now time.Time, nanos uint64) (rate uint64, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = map[string]usageSample{}
	}
	before, ok := h.last[id]
	elapsed := now.Sub(before.at)
	switch {
	case !ok || elapsed > longestRate || nanos < before.nanos:
		h.last[id] = usageSample{at: now, nanos: nanos}
		return 0, false
	case elapsed < shortestRate:
		return before.rate, before.known
	}
	rate = uint64(float64(nanos-before.nanos) / elapsed.Seconds())
	h.last[id] = usageSample{at: now, nanos: nanos, rate: rate, known: true}
	return rate, true
}

func (h *usageHistory) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.last, id)
}

// ContainerStats returns the counters of one running container.
func (r *Runtime) ContainerStats(ctx context.Context, req *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.container(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ContainerStatsResponse{Stats: r.containerStats(ctx, c)}, nil
}

// ListContainerStats returns those of all running containers.
func (r *Runtime) ListContainerStats(ctx context.Context, req *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	f := req.GetFilter()
	resp := &runtimeapi.ListContainerStatsResponse{}
	for _, c := range r.allContainers() {
		state, _ := c.snapshotState()
		if c.rec.Pause || state != runtimeapi.ContainerState_CONTAINER_RUNNING || !matchID(f.GetId(), c.rec.ID) ||
			!matchID(f.GetPodSandboxId(), c.rec.SandboxID) || !matchLabels(f.GetLabelSelector(), c.config.GetLabels()) {
			continue
		}
		resp.Stats = append(resp.Stats, r.containerStats(ctx, c))
	}
	return resp, nil
}

func (r *Runtime) containerStats(ctx context.Context, c *container) *runtimeapi.ContainerStats {
	out := &runtimeapi.ContainerStats{Attributes: &runtimeapi.ContainerAttributes{
		Id: c.rec.ID, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
	}}
	now := time.Now()
	if s, err := cgroup.Read(c.rec.CgroupPath); err == nil {
		out.Cpu, out.Memory = r.cpuUsage(c.rec.ID, now, s), memoryUsage(now, s)
		out.Swap = &runtimeapi.SwapUsage{Timestamp: now.UnixNano(), SwapUsageBytes: number(s.Swap)}
	}
	if cri.IsBrief(ctx) {
		return out
	}
	if u, err := r.cfg.Snapshots.Usage(ctx, c.rec.ID); err == nil {
		out.WritableLayer = &runtimeapi.FilesystemUsage{
			Timestamp: now.UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.cfg.Snapshots.Root()},
			UsedBytes: number(uint64(u.Bytes)), InodesUsed: number(uint64(u.Inodes)),
		}
	}
	return out
}

func (r *Runtime) cpuUsage(id string, now time.Time, s cgroup.Stats) *runtimeapi.CpuUsage {
	u := &runtimeapi.CpuUsage{Timestamp: now.UnixNano(), UsageCoreNanoSeconds: number(s.CPUNanos)}
	if rate, known := r.usage.rate(id, now, s.CPUNanos); known {
		u.UsageNanoCores = number(rate)
	}
	return u
}

func memoryUsage(now time.Time, s cgroup.Stats) *runtimeapi.MemoryUsage {
	u := &runtimeapi.MemoryUsage{
		Timestamp: now.UnixNano(), WorkingSetBytes: number(s.WorkingSet), UsageBytes: number(s.Memory),
		RssBytes: number(s.RSS), PageFaults: number(s.PageFaults), MajorPageFaults: number(s.MajorFaults),
	}
	if s.Limit > 0 {
		u.AvailableBytes = number(s.Limit - min(s.Limit, s.WorkingSet))
	}
	return u
}

func number(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }

// PodSandboxStats returns the counters of a pod and its containers.
func (r *Runtime) PodSandboxStats(ctx context.Context, req *runtimeapi.PodSandboxStatsRequest) (*runtimeapi.PodSandboxStatsResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxStatsResponse{Stats: r.sandboxStats(ctx, s)}, nil
}

// ListPodSandboxStats returns those of all pods that are ready.
func (r *Runtime) ListPodSandboxStats(ctx context.Context, req *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	f := req.GetFilter()
	resp := &runtimeapi.ListPodSandboxStatsResponse{}
	for _, s := range r.allSandboxes() {
		if s.phase() != phaseReady || !matchID(f.GetId(), s.rec.ID) || !matchLabels(f.GetLabelSelector(), s.config.GetLabels()) {
			continue
		}
		resp.Stats = append(resp.Stats, r.sandboxStats(ctx, s))
	}
	return resp, nil
}

func (r *Runtime) sandboxStats(ctx context.Context, s *podSandbox) *runtimeapi.PodSandboxStats {
	linux := &runtimeapi.LinuxPodSandboxStats{}
	now := time.Now()
	// The parent is the pod's own cgroup only if the kubelet named one.
	if parent := s.config.GetLinux().GetCgroupParent(); parent != "" {
		if st, err := cgroup.Read(parent); err == nil {
			linux.Cpu, linux.Memory = r.cpuUsage(s.rec.ID, now, st), memoryUsage(now, st)
			linux.Process = &runtimeapi.ProcessUsage{Timestamp: now.UnixNano(), ProcessCount: number(st.Processes)}
		}
	}
	pid := 0
	for _, c := range r.containersOf(s.rec.ID) {
		if state, p := c.snapshotState(); state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			linux.Containers = append(linux.Containers, r.containerStats(ctx, c))
			pid = p
		}
	}
	if pid != 0 && !s.rec.Sandbox.HostNetwork && !cri.IsBrief(ctx) {
		linux.Network = networkUsage(now, pid)
	}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id: s.rec.ID, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		},
		Linux: linux,
	}
}

// networkUsage reads the counters through any process of the pod.
func networkUsage(now time.Time, pid int) *runtimeapi.NetworkUsage {
	interfaces, err := netstat.Read(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return nil
	}
	u := &runtimeapi.NetworkUsage{Timestamp: now.UnixNano()}
	for _, i := range interfaces {
		if i.Name == "lo" {
			continue
		}
		iu := &runtimeapi.NetworkInterfaceUsage{
			Name: i.Name, RxBytes: number(i.RxBytes), RxErrors: number(i.RxErrors), TxBytes: number(i.TxBytes), TxErrors: number(i.TxErrors),
		}
		if i.Name == sandbox.IfName {
			u.DefaultInterface = iu
		} else {
			u.Interfaces = append(u.Interfaces, iu)
		}
	}
	return u
}
