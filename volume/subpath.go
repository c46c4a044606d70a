package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/linux/mount"
)

// SubPath returns the node's path for a mount's subPath inside the volume m,
// creating missing directories. container and index (of the mount in the
// container) name the place of the bind mount.
//
// The container may change the volume while we look: its links must not lead us
// to the node's files. So the path is opened below the volume by the kernel, and
// the open file, not its name, is bound to a directory of ours, which is what
// the runtime gets.
func (h *Host) SubPath(uid types.UID, m Mounted, volume, container string, index int, subPath string) (string, error) {
	if err := checkUID(uid); err != nil {
		return "", err
	}
	if !filepath.IsLocal(subPath) {
		return "", fmt.Errorf("subPath %q: must be a relative path without '..'", subPath)
	}
	dir, err := mount.OpenDir(m.HostPath)
	if err != nil {
		return "", err
	}
	defer dir.Close() //nolint:errcheck // only referred to
	info, err := os.Stat(m.HostPath)
	if err != nil {
		return "", err
	}
	file, err := dir.MkdirAll(subPath, info.Mode().Perm())
	if errors.Is(err, mount.ErrOutside) {
		return "", fmt.Errorf("subpath %q not within volume path %q", subPath, m.HostPath)
	}
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only referred to

	target := filepath.Join(h.PodDir(uid), subPathsDir, volume, container, strconv.Itoa(index))
	mounted, err := mount.IsPoint(target)
	if err != nil {
		return "", err
	}
	if mounted {
		if mount.SameFile(file, target) {
			return target, nil
		}
		// An earlier container of this name had another file there.
		if err := mount.Unmount(target); err != nil {
			return "", err
		}
	}
	if err := makeTarget(target, mount.IsDir(file)); err != nil {
		return "", err
	}
	return target, mount.Bind(file, target)
}

// makeTarget makes an empty directory or file to mount on.
func makeTarget(target string, dir bool) error {
	info, err := os.Lstat(target)
	switch {
	case err == nil && info.IsDir() == dir:
		return nil
	case err == nil:
		if err := os.Remove(target); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if dir {
		return os.MkdirAll(target, 0o750)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}
