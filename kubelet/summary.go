package kubelet

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubelettypes "k8s.io/kubelet/pkg/types"

	"github.com/periplus/periplus/linux/machine"
)

// Summary returns the answer of /stats/summary from the runtime's figures.
func (k *Kubelet) Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsv1alpha1.Summary, error) {
	resp, err := k.cfg.Runtime.ListPodSandboxStats(ctx, &runtimeapi.ListPodSandboxStatsRequest{})
	if err != nil {
		return nil, err
	}
	s := &statsv1alpha1.Summary{Node: k.nodeStats()}
	for _, p := range resp.Stats {
		s.Pods = append(s.Pods, podStats(p, onlyCPUAndMemory))
	}
	return s, nil
}

func (k *Kubelet) nodeStats() statsv1alpha1.NodeStats {
	total, free := uint64(max(0, machine.Memory())), uint64(max(0, machine.MemoryAvailable()))
	used := total - min(free, total)
	cpu := machine.CPUTime()
	now := metav1.Now()
	n := statsv1alpha1.NodeStats{
		NodeName: k.cfg.NodeName, StartTime: metav1.NewTime(machine.BootTime()),
		CPU:    &statsv1alpha1.CPUStats{Time: now, UsageCoreNanoSeconds: &cpu},
		Memory: &statsv1alpha1.MemoryStats{Time: now, AvailableBytes: &free, UsageBytes: &used, WorkingSetBytes: &used},
	}
	size, left := machine.Disk(k.cfg.RootDir)
	capacity, available := uint64(max(0, size)), uint64(max(0, left))
	n.Fs = &statsv1alpha1.FsStats{Time: now, CapacityBytes: &capacity, AvailableBytes: &available}
	return n
}

func podStats(p *runtimeapi.PodSandboxStats, onlyCPUAndMemory bool) statsv1alpha1.PodStats {
	m := p.GetAttributes().GetMetadata()
	out := statsv1alpha1.PodStats{PodRef: statsv1alpha1.PodReference{Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUid()}}
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
			CPU:  cpuStats(c.GetCpu()), Memory: memoryStats(c.GetMemory()),
		}
		if cs.Name == "" {
			cs.Name = c.GetAttributes().GetMetadata().GetName()
		}
		if fs := c.GetWritableLayer(); fs != nil && !onlyCPUAndMemory {
			cs.Rootfs = &statsv1alpha1.FsStats{Time: at(fs.GetTimestamp()), UsedBytes: value(fs.GetUsedBytes()), InodesUsed: value(fs.GetInodesUsed())}
		}
		out.Containers = append(out.Containers, cs)
	}
	return out
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

func value(v *runtimeapi.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	n := v.Value
	return &n
}

func at(nanos int64) metav1.Time { return metav1.NewTime(time.Unix(0, nanos)) }
