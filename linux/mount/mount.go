package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Tmpfs mounts a new tmpfs at dir, which must exist. size is its limit in bytes,
// 0 is the kernel's default (half of the memory). Where the kernel can (6.4), the
// pages are never swapped out, because secrets live there.
func Tmpfs(dir string, size int64, mode os.FileMode) error {
	options := []string{"mode=" + strconv.FormatUint(uint64(mode.Perm()), 8)}
	if mode&os.ModeSticky != 0 {
		options[0] = "mode=1" + strconv.FormatUint(uint64(mode.Perm()), 8)
	}
	if size > 0 {
		options = append(options, "size="+strconv.FormatInt(size, 10))
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	data := strings.Join(options, ",")
	err := unix.Mount("tmpfs", dir, "tmpfs", flags, data+",noswap")
	if errors.Is(err, unix.EINVAL) { // an older kernel does not know noswap
		err = unix.Mount("tmpfs", dir, "tmpfs", flags, data)
	}
	return wrap("mount tmpfs on", dir, err)
}

// IsPoint reports whether path is the root of a mount. A path that does not
// exist is not; a symbolic link is not followed.
func IsPoint(path string) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return false, nil
	case err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
	case err != nil && !errors.Is(err, unix.ENOSYS):
		return false, wrap("statx", path, err)
	}
	// Before Linux 5.8 only the table of mounts knows about bind mounts within one file system.
	return inMountInfo(path)
}

func inMountInfo(path string) (bool, error) {
	points, err := Under(path)
	if err != nil {
		return false, err
	}
	for _, p := range points {
		if p == filepath.Clean(path) {
			return true, nil
		}
	}
	return false, nil
}

// Under lists the mount points at dir and below it, deepest last mounted first,
// so that they can be unmounted in that order.
func Under(dir string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return underIn(string(data), filepath.Clean(dir)), nil
}

// underIn reads proc(5) mountinfo: the fifth field is the mount point, with
// blanks and backslashes written as octal.
func underIn(mountinfo, dir string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if point == dir || strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/") {
			found = append(found, point)
		}
	}
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found
}

// Of lists where a device is mounted.
func Of(device string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		left, right, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if ok && len(fields) >= 5 && len(kind) >= 2 && kind[1] == device {
			found = append(found, unescape(fields[4]))
		}
	}
	return found, nil
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Unmount removes the topmost mount at path; it succeeds when there is none.
// A mount in use is detached: it vanishes from the tree now and ends with its last user.
func Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return wrap("unmount", path, err)
}

// Bind mounts what f refers to at target (a directory on a directory, a file on
// a file). f may be opened with O_PATH. Mounts below it come along.
func Bind(f *os.File, target string) error {
	source := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	return wrap("bind mount on", target, unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""))
}

// Free returns the bytes and inodes of the file system that path is on.
func Free(path string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Space{}, wrap("statfs", path, err)
	}
	size := uint64(st.Bsize) //nolint:gosec // never negative
	return Space{
		Capacity: st.Blocks * size, Available: st.Bavail * size, Used: (st.Blocks - st.Bfree) * size,
		Inodes: st.Files, InodesFree: st.Ffree,
	}, nil
}

// Space is the size of a file system, in bytes and inodes.
type Space struct {
	Capacity, Available, Used uint64
	Inodes, InodesFree        uint64
}

func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, path, err)
}
