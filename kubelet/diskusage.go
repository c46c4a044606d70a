package kubelet

import (
	"context"
	"io/fs"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/periplus/periplus/linux/machine"
	"github.com/periplus/periplus/linux/pressure"
	"github.com/periplus/periplus/volume"
)

// volumeUsage is the part of volume.Host that measures.
type volumeUsage interface {
	Usage(pod types.UID) ([]volume.Usage, error)
}

var _ volumeUsage = (*volume.Host)(nil)

// addDisk adds to a pod's figures what it occupies on the node's disk: the logs of
// its containers, its volumes, and all of it together. It walks their files.
func (k *Kubelet) addDisk(out *statsv1alpha1.PodStats, pod *corev1.Pod, node pressure.Filesystem) {
	now := metav1.Now()
	total, files := uint64(0), uint64(0)
	add := func(s *statsv1alpha1.FsStats) {
		if s != nil && s.UsedBytes != nil {
			total += *s.UsedBytes
		}
		if s != nil && s.InodesUsed != nil {
			files += *s.InodesUsed
		}
	}
	for i := range out.Containers {
		c := &out.Containers[i]
		bytes, inodes := occupied(filepath.Join(k.podLogDir(pod), c.Name))
		c.Logs = fsStats(now, node)
		c.Logs.UsedBytes, c.Logs.InodesUsed = &bytes, &inodes
		add(c.Logs)
		add(c.Rootfs)
	}
	if v, ok := k.cfg.Volumes.(volumeUsage); ok {
		list, _ := v.Usage(pod.UID)
		for i := range list {
			u := &list[i]
			s := statsv1alpha1.VolumeStats{Name: u.Volume, FsStats: statsv1alpha1.FsStats{Time: now,
				CapacityBytes: &u.Capacity, AvailableBytes: &u.Available, UsedBytes: &u.Bytes,
				Inodes: &u.Space.Inodes, InodesFree: &u.InodesFree, InodesUsed: &u.Inodes}}
			for j := range pod.Spec.Volumes {
				src := &pod.Spec.Volumes[j]
				switch {
				case src.Name != u.Volume:
				case src.PersistentVolumeClaim != nil:
					s.PVCRef = &statsv1alpha1.PVCReference{Name: src.PersistentVolumeClaim.ClaimName, Namespace: pod.Namespace}
				case src.Ephemeral != nil:
					s.PVCRef = &statsv1alpha1.PVCReference{Name: pod.Name + "-" + src.Name, Namespace: pod.Namespace}
				case src.EmptyDir == nil || src.EmptyDir.Medium != corev1.StorageMediumMemory:
					add(&s.FsStats)
				}
			}
			out.VolumeStats = append(out.VolumeStats, s)
		}
	}
	out.EphemeralStorage = fsStats(now, node)
	out.EphemeralStorage.UsedBytes, out.EphemeralStorage.InodesUsed = &total, &files
}

// fsStats describes a file system without what of it somebody uses.
func fsStats(now metav1.Time, f pressure.Filesystem) *statsv1alpha1.FsStats {
	return &statsv1alpha1.FsStats{Time: now, CapacityBytes: &f.Capacity, AvailableBytes: &f.Available, Inodes: &f.Inodes, InodesFree: &f.InodesFree}
}

// occupied counts blocks and files below a directory.
func occupied(dir string) (bytes, files uint64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // vanished
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += uint64(st.Blocks) * 512 //nolint:gosec // never negative
				files++
			}
		}
		return nil
	})
	return bytes, files
}

// addNodeDisk adds the node's disks, its processes and the sum of its pods.
func (k *Kubelet) addNodeDisk(ctx context.Context, n *statsv1alpha1.NodeStats) (node pressure.Filesystem) {
	now := metav1.Now()
	node, err := pressure.ReadFilesystem(k.cfg.RootDir)
	if err == nil {
		n.Fs = fsStats(now, node)
		inodes := node.Inodes - min(node.Inodes, node.InodesFree)
		n.Fs.UsedBytes, n.Fs.InodesUsed = &node.Used, &inodes
	}
	if r, err := k.cfg.Images.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{}); err == nil {
		of := func(list []*runtimeapi.FilesystemUsage) *statsv1alpha1.FsStats {
			if len(list) == 0 {
				return nil
			}
			f, err := pressure.ReadFilesystem(list[0].GetFsId().GetMountpoint())
			if err != nil {
				return nil
			}
			s := fsStats(now, f)
			s.UsedBytes, s.InodesUsed = value(list[0].UsedBytes), value(list[0].InodesUsed)
			return s
		}
		n.Runtime = &statsv1alpha1.RuntimeStats{ImageFs: of(r.ImageFilesystems), ContainerFs: of(r.ContainerFilesystems)}
	}
	if running, most, err := pressure.Processes(); err == nil {
		n.Rlimit = &statsv1alpha1.RlimitStats{Time: now, MaxPID: &most, NumOfRunningProcesses: &running}
	}
	return node
}

// addPodsContainer adds the sum of all pods, which upstream calls a system container.
func (k *Kubelet) addPodsContainer(n *statsv1alpha1.NodeStats) {
	c, ok := k.cfg.Cgroups.(interface {
		Memory() (used, limit uint64, ok bool)
	})
	if !ok {
		return
	}
	used, limit, ok := c.Memory()
	if !ok {
		return
	}
	free := limit - min(limit, used)
	n.SystemContainers = append(n.SystemContainers, statsv1alpha1.ContainerStats{
		Name: statsv1alpha1.SystemContainerPods, StartTime: metav1.NewTime(machine.BootTime()),
		Memory: &statsv1alpha1.MemoryStats{Time: metav1.Now(), WorkingSetBytes: &used, AvailableBytes: &free},
	})
}
