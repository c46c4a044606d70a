package scheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// AsPod returns an event's object as a pod, nil when it is none.
func AsPod(o any) *v1.Pod {
	p, _ := o.(*v1.Pod)
	return p
}

// AsNode returns an event's object as a node, nil when it is none.
func AsNode(o any) *v1.Node {
	n, _ := o.(*v1.Node)
	return n
}

// SamePod is an EventHint.Worth: the event is about the waiting pod itself.
func SamePod(p *PodInfo, _, new any) bool {
	pod := AsPod(new)
	return pod != nil && pod.UID == p.Pod.UID
}

// HostPorts returns the host ports that a pod takes.
func HostPorts(pod *v1.Pod) []HostPort { return hostPorts(pod) }

// Tolerates reports whether one of tolerations tolerates the taint.
func Tolerates(tolerations []v1.Toleration, taint *v1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Background(), taint, true) {
			return true
		}
	}
	return false
}
