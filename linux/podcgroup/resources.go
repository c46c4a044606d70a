package podcgroup

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Bounds and units of the CPU controller, as upstream uses them.
const (
	Period = 100_000 // microseconds

	minShares = 2
	maxShares = 262_144
	minQuota  = 1_000
)

// Shares turns a CPU request in millicores into cpu.shares.
func Shares(milli int64) int64 {
	if milli == 0 {
		return minShares
	}
	return min(max(milli*1024/1000, minShares), maxShares)
}

// Quota turns a CPU limit in millicores into microseconds per Period; no limit is 0.
func Quota(milli int64) int64 {
	if milli == 0 {
		return 0
	}
	return max(milli*Period/1000, minQuota)
}

// weight turns cpu.shares into cpu.weight of cgroup v2 (KEP-2254).
func weight(shares int64) int64 { return 1 + (shares-2)*9999/262_142 }

// QOS returns a pod's class: from its status, else from its resources.
func QOS(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	requests, limits := corev1.ResourceList{}, corev1.ResourceList{}
	guaranteed := true
	add := func(r corev1.ResourceRequirements) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, request := r.Limits[name], r.Requests[name]
			if !request.IsZero() {
				requests[name] = request
			}
			if limit.IsZero() {
				guaranteed = false
				continue
			}
			limits[name] = limit
			if !request.IsZero() && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	if pod.Spec.Resources != nil {
		add(*pod.Spec.Resources)
	} else {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				add(list[i].Resources)
			}
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// limits of a pod's cgroup; 0 means none.
type limits struct{ shares, quota, memory int64 }

// limitsOf sums a pod up. A limit holds for the pod only if every container has one.
func limitsOf(pod *corev1.Pod) limits {
	if QOS(pod) == corev1.PodQOSBestEffort {
		return limits{shares: minShares}
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	max := maps.Clone(resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}))
	if !resourcehelper.IsPodLevelLimitsSet(pod) {
		for i := range pod.Spec.Containers {
			l := pod.Spec.Containers[i].Resources.Limits
			if l.Cpu().IsZero() {
				delete(max, corev1.ResourceCPU)
			}
			if l.Memory().IsZero() {
				delete(max, corev1.ResourceMemory)
			}
		}
	}
	return limits{
		shares: Shares(requests.Cpu().MilliValue()),
		quota:  Quota(max.Cpu().MilliValue()),
		memory: max.Memory().Value(),
	}
}
