package metrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// A point is what a node or a container had used at one time.
type point struct {
	at     time.Time
	start  time.Time // of the container; zero for nodes, and if it is not known
	cpu    uint64    // nanoseconds of processor time since the start
	memory uint64    // bytes: the working set
}

// A reading is all that a kubelet says at one time.
type reading struct {
	node point
	pods map[types.NamespacedName]map[string]point // by pod and container
}

// use is what was used during a window that ended at a time.
type use struct {
	at     time.Time
	window time.Duration
	list   corev1.ResourceList
}

// between returns the use between two points. What has started (or started again)
// since the first one counts from its start. ok is false when that gives no window.
func between(before point, known bool, now point) (u use, ok bool) {
	if !known || now.start.After(before.at) || now.cpu < before.cpu {
		if now.start.IsZero() {
			return use{}, false
		}
		before = point{at: now.start}
	}
	window := now.at.Sub(before.at)
	if window < shortestWindow {
		return use{}, false
	}
	rate := float64(now.cpu-before.cpu) / window.Seconds()
	return use{now.at, window, corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(int64(rate), resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(int64(now.memory), resource.BinarySI), //nolint:gosec // memories are smaller than 2^63
	}}, true
}
