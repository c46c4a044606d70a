package kubelet

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/linux/machine"
	"github.com/periplus/periplus/linux/pressure"
)

// Summary returns the answer of /stats/summary from the runtime's figures. Rates
// of processors are from one request to the next. When nobody has asked for a while
// there is nothing to begin from: then it reads twice, a second apart.
func (k *Kubelet) Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsv1alpha1.Summary, error) {
	if onlyCPUAndMemory {
		ctx = cri.Brief(ctx)
	}
	s, err := k.summary(ctx, onlyCPUAndMemory)
	if err != nil || s.Node.CPU.UsageNanoCores != nil {
		return s, err
	}
	pause := time.NewTimer(shortestRate)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return s, nil
	}
	return k.summary(ctx, onlyCPUAndMemory)
}

// ResourceStats is Summary without what takes long: processors and memory, and
// rates only where they are known already.
func (k *Kubelet) ResourceStats(ctx context.Context) (*statsv1alpha1.Summary, error) {
	return k.summary(cri.Brief(ctx), true)
}

func (k *Kubelet) summary(ctx context.Context, onlyCPUAndMemory bool) (*statsv1alpha1.Summary, error) {
	resp, err := k.cfg.Runtime.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{})
	if err != nil {
		return nil, err
	}
	s := &statsv1alpha1.Summary{Node: k.nodeStats()}
	var disk pressure.Filesystem
	if !onlyCPUAndMemory {
		disk = k.addNodeDisk(ctx, &s.Node)
	}
	k.addPodsContainer(&s.Node)
	pods := map[string]*corev1.Pod{}
	for _, p := range k.Pods() {
		pods[string(p.UID)] = p
	}
	for _, p := range resp.Stats {
		pod := pods[p.GetAttributes().GetMetadata().GetUid()]
		st := podStats(p, pod, onlyCPUAndMemory)
		if pod != nil && !onlyCPUAndMemory {
			k.addDisk(&st, pod, disk)
		}
		s.Pods = append(s.Pods, st)
	}
	return s, nil
}

// Rates are of no less and of no more time than this.
const (
	shortestRate = time.Second
	longestRate  = 2 * time.Minute
)

// nodeUsage turns the processor time of the machine into a rate.
type nodeUsage struct {
	mu    sync.Mutex // guards the rest
	at    time.Time
	nanos uint64
	rate  *uint64
}

func (u *nodeUsage) next(now time.Time, nanos uint64) *uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	elapsed := now.Sub(u.at)
	switch {
	case elapsed > longestRate || nanos < u.nanos:
		u.at, u.nanos, u.rate = now, nanos, nil
	case elapsed >= shortestRate:
		rate := uint64(float64(nanos-u.nanos) / elapsed.Seconds())
		u.at, u.nanos, u.rate = now, nanos, &rate
	}
	return u.rate
}

func (k *Kubelet) nodeStats() statsv1alpha1.NodeStats {
	m := machine.ReadMemoryUse()
	free := m.Total - min(m.Total, m.WorkingSet)
	swapFree := m.SwapTotal - m.SwapUsed
	cpu := machine.CPUTime()
	now := metav1.Now()
	n := statsv1alpha1.NodeStats{
		NodeName: k.cfg.NodeName, StartTime: metav1.NewTime(machine.BootTime()),
		CPU:    &statsv1alpha1.CPUStats{Time: now, UsageNanoCores: k.usage.next(now.Time, cpu), UsageCoreNanoSeconds: &cpu},
		Memory: &statsv1alpha1.MemoryStats{Time: now, AvailableBytes: &free, UsageBytes: &m.Used, WorkingSetBytes: &m.WorkingSet, RSSBytes: &m.Anonymous},
		Swap:   &statsv1alpha1.SwapStats{Time: now, SwapUsageBytes: &m.SwapUsed, SwapAvailableBytes: &swapFree},
	}
	return n
}

// podStats describes a pod as the runtime sees it; pod, which may be nil, knows since when it runs.
func podStats(p *runtimeapi.PodSandboxStats, pod *corev1.Pod, onlyCPUAndMemory bool) statsv1alpha1.PodStats {
	m := p.GetAttributes().GetMetadata()
	out := statsv1alpha1.PodStats{PodRef: statsv1alpha1.PodReference{Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUid()}}
	if pod != nil && pod.Status.StartTime != nil {
		out.StartTime = *pod.Status.StartTime
	}
	l := p.GetLinux()
	out.CPU, out.Memory = cpuStats(l.GetCpu()), memoryStats(l.GetMemory())
	if n := l.GetNetwork().GetDefaultInterface(); n != nil && !onlyCPUAndMemory {
		out.Network = &statsv1alpha1.NetworkStats{Time: at(l.GetNetwork().GetTimestamp()), InterfaceStats: statsv1alpha1.InterfaceStats{
			Name: n.GetName(), RxBytes: value(n.GetRxBytes()), RxErrors: value(n.GetRxErrors()),
			TxBytes: value(n.GetTxBytes()), TxErrors: value(n.GetTxErrors()),
		}}
	}
	if c := l.GetProcess().GetProcessCount(); c != nil && !onlyCPUAndMemory {
		out.ProcessStats = &statsv1alpha1.ProcessStats{ProcessCount: value(c)}
	}
	for _, c := range l.GetContainers() {
		cs := statsv1alpha1.ContainerStats{
			Name: c.GetAttributes().GetLabels()[kubelettypes.KubernetesContainerNameLabel],
			CPU:  cpuStats(c.GetCpu()), Memory: memoryStats(c.GetMemory()), Swap: swapStats(c.GetSwap()),
		}
		if cs.Name == "" {
			cs.Name = c.GetAttributes().GetMetadata().GetName()
		}
		cs.StartTime = startedAt(pod, cs.Name)
		if fs := c.GetWritableLayer(); fs != nil && !onlyCPUAndMemory {
			cs.Rootfs = &statsv1alpha1.FsStats{Time: at(fs.GetTimestamp()), UsedBytes: value(fs.GetUsedBytes()), InodesUsed: value(fs.GetInodesUsed())}
		}
		out.Containers = append(out.Containers, cs)
	}
	return out
}

// startedAt is since when a container of a pod runs, zero if that is not known.
func startedAt(pod *corev1.Pod, container string) metav1.Time {
	if pod == nil {
		return metav1.Time{}
	}
	st := &pod.Status
	for _, list := range [][]corev1.ContainerStatus{st.ContainerStatuses, st.InitContainerStatuses, st.EphemeralContainerStatuses} {
		for i := range list {
			if running := list[i].State.Running; list[i].Name == container && running != nil {
				return running.StartedAt
			}
		}
	}
	return metav1.Time{}
}

func cpuStats(c *runtimeapi.CpuUsage) *statsv1alpha1.CPUStats {
	if c == nil {
		return nil
	}
	return &statsv1alpha1.CPUStats{Time: at(c.Timestamp), UsageNanoCores: value(c.UsageNanoCores), UsageCoreNanoSeconds: value(c.UsageCoreNanoSeconds)}
}

func memoryStats(m *runtimeapi.MemoryUsage) *statsv1alpha1.MemoryStats {
	if m == nil {
		return nil
	}
	return &statsv1alpha1.MemoryStats{Time: at(m.Timestamp), AvailableBytes: value(m.AvailableBytes), UsageBytes: value(m.UsageBytes),
		WorkingSetBytes: value(m.WorkingSetBytes), RSSBytes: value(m.RssBytes), PageFaults: value(m.PageFaults), MajorPageFaults: value(m.MajorPageFaults)}
}

func swapStats(s *runtimeapi.SwapUsage) *statsv1alpha1.SwapStats {
	if s == nil {
		return nil
	}
	return &statsv1alpha1.SwapStats{Time: at(s.Timestamp), SwapUsageBytes: value(s.SwapUsageBytes), SwapAvailableBytes: value(s.SwapAvailableBytes)}
}

func value(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	n := v.Value
	return &n
}

func at(nanos int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanos)) }
