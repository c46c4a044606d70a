package shutdown

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// systemCritical is the priority from which on a pod counts as critical.
const systemCritical = 2_000_000_000

// A Period is how long pods of at least a priority have to end.
type Period struct {
	Priority int32 `json:"priority"`
	Seconds  int64 `json:"shutdownGracePeriodSeconds"`
}

// Periods divides a time among ordinary pods and critical ones, which come last.
func Periods(total, critical time.Duration) ([]Period, error) {
	switch {
	case total < 0 || total > 0 && total < time.Second:
		return nil, fmt.Errorf("shutdown-grace-period: %v is not allowed: must be 0, or a second at least", total)
	case critical < 0 || critical > 0 && critical < time.Second || critical > total:
		return nil, fmt.Errorf("shutdown-grace-period-critical-pods: %v is not allowed: must be 0, or a second at least and not more than shutdown-grace-period %v", critical, total)
	case total == 0:
		return nil, nil
	}
	return []Period{{0, int64((total - critical) / time.Second)}, {systemCritical, int64(critical / time.Second)}}, nil
}

// A Group is the pods that end together.
type Group struct {
	Period
	Pods []*corev1.Pod
}

// Groups sorts pods into periods, the lowest priority first: a pod belongs to the
// highest period that its priority reaches, or to the lowest.
func Groups(periods []Period, pods []*corev1.Pod) []Group {
	periods = slices.Clone(periods)
	slices.SortFunc(periods, func(a, b Period) int { return cmp.Compare(a.Priority, b.Priority) })
	out := make([]Group, len(periods))
	for i, p := range periods {
		out[i].Period = p
	}
	for _, pod := range pods {
		priority, at := int32(0), 0
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		for i := range out {
			if out[i].Priority <= priority {
				at = i
			}
		}
		if len(out) > 0 {
			out[at].Pods = append(out[at].Pods, pod)
		}
	}
	return out
}

// Total is the time of all periods together.
func Total(periods []Period) time.Duration {
	var sum time.Duration
	for _, p := range periods {
		sum += time.Duration(p.Seconds) * time.Second
	}
	return sum
}
