package volume

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/linux/mount"
)

// Usage is what one volume occupies.
type Usage struct {
	Volume string
	Bytes  uint64
	Inodes uint64
	mount.Space
}

// Usage measures the pod's volumes that live in its own directory. It walks
// their files: call it on demand, not in a loop.
func (h *Host) Usage(uid types.UID) ([]Usage, error) {
	dirs, err := filepath.Glob(filepath.Join(h.PodDir(uid), volumesDir, "*", "*"))
	if err != nil {
		return nil, err
	}
	out := make([]Usage, 0, len(dirs))
	for _, dir := range dirs {
		u := Usage{Volume: filepath.Base(dir)}
		if u.Space, err = mount.Free(dir); err != nil {
			continue // unmounted meanwhile
		}
		u.Bytes, u.Inodes = diskUsage(dir)
		out = append(out, u)
	}
	return out, nil
}

// diskUsage counts blocks, like du: files that vanish meanwhile count nothing,
// other file systems are not entered, a file with two names counts once.
func diskUsage(dir string) (bytes, inodes uint64) {
	var root syscall.Stat_t
	if syscall.Stat(dir, &root) != nil {
		return 0, 0
	}
	linked := map[uint64]bool{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // vanished
		}
		info, err := os.Lstat(path)
		if err != nil {
			return nil //nolint:nilerr // vanished
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Dev != root.Dev {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() && st.Nlink > 1 {
			if linked[st.Ino] {
				return nil
			}
			linked[st.Ino] = true
		}
		bytes += uint64(st.Blocks) * 512 //nolint:gosec // never negative
		inodes++
		return nil
	})
	return bytes, inodes
}
