package kubelet

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/podcgroup"
)

// OOM scores by quality of service, as upstream sets them.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000

	systemCriticalPriority = 2_000_000_000
)

// cpuAndMemory turns requests and limits into cgroup terms.
func cpuAndMemory(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	r := &runtimeapi.LinuxContainerResources{CpuPeriod: podcgroup.Period}
	request, limit := requests.Cpu(), limits.Cpu()
	if _, ok := requests[corev1.ResourceCPU]; !ok && !limit.IsZero() {
		request = limit
	}
	r.CpuShares = podcgroup.Shares(request.MilliValue())
	r.CpuQuota = podcgroup.Quota(limit.MilliValue())
	r.MemoryLimitInBytes = limits.Memory().Value()
	for name, q := range limits {
		if size, ok := hugePageSize(name); ok {
			r.HugepageLimits = append(r.HugepageLimits, &runtimeapi.HugepageLimit{PageSize: size, Limit: uint64(q.Value())})
		}
	}
	return r
}

// hugePageSize turns hugepages-2Mi into 2MB.
func hugePageSize(name corev1.ResourceName) (string, bool) {
	s, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
	if !ok {
		return "", false
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return "", false
	}
	switch v := q.Value(); {
	case v >= 1<<30:
		return itoa(v>>30) + "GB", true
	case v >= 1<<20:
		return itoa(v>>20) + "MB", true
	default:
		return itoa(v>>10) + "KB", true
	}
}

func itoa(v int64) string { return resource.NewQuantity(v, resource.DecimalSI).String() }

// containerResources is a container's share of the machine.
func (k *Kubelet) containerResources(pod *corev1.Pod, c *corev1.Container) *runtimeapi.LinuxContainerResources {
	r := cpuAndMemory(c.Resources.Requests, c.Resources.Limits)
	r.OomScoreAdj = oomScore(pod, c, k.cfg.MemoryCapacity)
	return r
}

// oomScore makes those who use more memory than they asked for die first:
// Guaranteed -997, BestEffort 1000, Burstable in between, the less the more of
// the machine's memory they requested.
func oomScore(pod *corev1.Pod, c *corev1.Container, capacity int64) int64 {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCriticalPriority {
		return oomGuaranteed
	}
	switch podcgroup.QOS(pod) {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	score := burstableScore(c, capacity)
	if isSidecar(c) {
		// A sidecar is not to die before the containers that it serves.
		for i := range pod.Spec.Containers {
			score = min(score, burstableScore(&pod.Spec.Containers[i], capacity))
		}
	}
	return score
}

func burstableScore(c *corev1.Container, capacity int64) int64 {
	request := c.Resources.Requests.Memory().Value()
	score := int64(1000)
	if capacity > 0 {
		score -= 1000 * request / capacity
	}
	return min(max(score, 1000+oomGuaranteed), oomBestEffort-1)
}
