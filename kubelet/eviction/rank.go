package eviction

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Stats finds the figures of a pod.
type Stats func(*corev1.Pod) (*statsv1alpha1.PodStats, bool)

// Layout says which file systems are apart.
type Layout struct {
	// Images are not where the volumes and logs are; Layers of containers are where the images are.
	Images bool
}

// parts of a pod that a file system holds.
type parts struct{ logs, layers, volumes bool }

func (l Layout) parts(s Signal) parts {
	switch s {
	case NodeFsAvailable, NodeFsInodesFree:
		return parts{logs: true, volumes: true, layers: !l.Images}
	case ImageFsAvailable, ImageFsInodesFree:
		if l.Images {
			return parts{layers: true}
		}
		return parts{logs: true, volumes: true, layers: true}
	}
	return parts{layers: true, logs: true, volumes: true}
}

// Rank sorts pods: the first one goes first. Those of which nothing is known go
// before all; then those that use more than they requested, those of low priority,
// those that use most above their request. Processes are ranked without requests.
func Rank(s Signal, l Layout, pods []*corev1.Pod, stats Stats) {
	usage := func(p *corev1.Pod) (used, requested int64, known bool) {
		st, ok := stats(p)
		if !ok {
			return 0, 0, false
		}
		switch s.Resource() {
		case corev1.ResourceMemory:
			return memoryOf(st), requestOf(p, corev1.ResourceMemory), true
		case pids:
			if st.ProcessStats != nil && st.ProcessStats.ProcessCount != nil {
				return int64(*st.ProcessStats.ProcessCount), 0, true //nolint:gosec // few
			}
			return 0, 0, true
		case inodes:
			_, n := diskOf(st, p, l.parts(s))
			return n, 0, true
		}
		bytes, _ := diskOf(st, p, l.parts(s))
		return bytes, requestOf(p, corev1.ResourceEphemeralStorage), true
	}
	exceeds := s.Resource() != pids
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		usedA, requestedA, knownA := usage(a)
		usedB, requestedB, knownB := usage(b)
		if !exceeds {
			return cmp.Or(cmp.Compare(priority(a), priority(b)), first(!knownA, !knownB), cmp.Compare(usedB, usedA))
		}
		return cmp.Or(first(!knownA, !knownB), first(usedA > requestedA, usedB > requestedB),
			cmp.Compare(priority(a), priority(b)), cmp.Compare(usedB-requestedB, usedA-requestedA))
	})
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority != nil {
		return *p.Spec.Priority
	}
	return 0
}

func requestOf(p *corev1.Pod, name corev1.ResourceName) int64 {
	q := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[name]
	return q.Value()
}

func memoryOf(st *statsv1alpha1.PodStats) int64 {
	if st.Memory == nil || st.Memory.WorkingSetBytes == nil {
		return 0
	}
	return int64(*st.Memory.WorkingSetBytes) //nolint:gosec // smaller than 2^63
}

// diskOf sums what a pod occupies.
func diskOf(st *statsv1alpha1.PodStats, p *corev1.Pod, w parts) (bytes, files int64) {
	add := func(fs *statsv1alpha1.FsStats) {
		if fs == nil {
			return
		}
		if fs.UsedBytes != nil {
			bytes += int64(*fs.UsedBytes) //nolint:gosec // smaller than 2^63
		}
		if fs.InodesUsed != nil {
			files += int64(*fs.InodesUsed) //nolint:gosec // smaller than 2^63
		}
	}
	for i := range st.Containers {
		if w.layers {
			add(st.Containers[i].Rootfs)
		}
		if w.logs {
			add(st.Containers[i].Logs)
		}
	}
	if w.volumes {
		for i := range st.VolumeStats {
			if local(p, st.VolumeStats[i].Name) {
				add(&st.VolumeStats[i].FsStats)
			}
		}
	}
	return bytes, files
}

// local says whether a volume is on the node's disk.
func local(p *corev1.Pod, name string) bool {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Name != name {
			continue
		}
		return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil || v.GitRepo != nil ||
			v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
	}
	return false
}

func bytes(n uint64) *resource.Quantity {
	return resource.NewQuantity(int64(n), resource.BinarySI) //nolint:gosec // smaller than 2^63
}
