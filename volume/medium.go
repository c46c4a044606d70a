package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/periplus/periplus/linux/mount"
)

// DiskDir makes the request's directory on the node's disk.
func (r *Request) DiskDir(mode fs.FileMode) error { return makeDir(r.Dir, mode) }

// MemoryDir makes the request's directory and mounts a tmpfs on it, unless there
// is one. Its size is the smallest of limit (if not nil), the pod's memory limit
// (if every container has one) and the node's allocatable memory.
func (r *Request) MemoryDir(mode fs.FileMode, limit *resource.Quantity) error {
	if err := makeDir(r.Dir, mode); err != nil {
		return err
	}
	mounted, err := mount.IsPoint(r.Dir)
	if err != nil || mounted {
		return err
	}
	if err := mount.Tmpfs(r.Dir, r.memorySize(limit), mode); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w (the kubelet must run as root, with CAP_SYS_ADMIN)", err)
		}
		return err
	}
	return nil
}

func makeDir(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	const bits = fs.ModePerm | fs.ModeSticky
	// Only if something is missing: an fsGroup's bits stay.
	if info.Mode()&mode&bits == mode&bits {
		return nil
	}
	return os.Chmod(dir, mode&bits|info.Mode()&fs.ModeSetgid)
}

func (r *Request) memorySize(limit *resource.Quantity) int64 {
	var size int64
	// Before the node is registered its object is absent: the kernel's default will do.
	if allocatable, err := r.allocatable(); err == nil {
		size = allocatable.Memory().Value()
	}
	consider := func(v int64) {
		if v > 0 && (size == 0 || v < size) {
			size = v
		}
	}
	consider(podMemoryLimit(r.Pod))
	if limit != nil {
		consider(limit.Value())
	}
	return size
}

// podMemoryLimit is 0 if a container has no limit.
func podMemoryLimit(pod *corev1.Pod) int64 {
	if pod.Spec.Resources != nil {
		if q, ok := pod.Spec.Resources.Limits[corev1.ResourceMemory]; ok {
			return q.Value()
		}
	}
	var sum, largestInit int64
	for i := range pod.Spec.Containers {
		v := pod.Spec.Containers[i].Resources.Limits.Memory().Value()
		if v == 0 {
			return 0
		}
		sum += v
	}
	for i := range pod.Spec.InitContainers {
		largestInit = max(largestInit, pod.Spec.InitContainers[i].Resources.Limits.Memory().Value())
	}
	return max(sum, largestInit)
}

// Remove undoes DiskDir and MemoryDir: it unmounts what is mounted at dir and
// removes it with its content. It succeeds when nothing is there.
func Remove(dir string) error {
	// Mounts below first: removing must never reach into somebody else's files.
	points, err := mount.Under(dir)
	if err != nil {
		return err
	}
	for _, p := range points {
		if err := mount.Unmount(p); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
