package disk

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flags are mount options that the kernel takes as bits.
var flags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "noatime": unix.MS_NOATIME, "nodiratime": unix.MS_NODIRATIME, "relatime": unix.MS_RELATIME,
	"strictatime": unix.MS_STRICTATIME, "nodev": unix.MS_NODEV, "nosuid": unix.MS_NOSUID, "noexec": unix.MS_NOEXEC,
	"sync": unix.MS_SYNCHRONOUS, "dirsync": unix.MS_DIRSYNC, "mand": unix.MS_MANDLOCK, "lazytime": unix.MS_LAZYTIME,
}

// split turns mount options into bits and what is left for the file system.
func split(options []string) (bits uintptr, data string) {
	var rest []string
	for _, list := range options {
		for o := range strings.SplitSeq(list, ",") {
			switch b, ok := flags[o]; {
			case ok:
				bits |= b
			case o == "" || o == "rw" || o == "defaults":
			default:
				rest = append(rest, o)
			}
		}
	}
	return bits, strings.Join(rest, ",")
}

// Mount mounts the file system on device at dir, with mount(8)'s options.
func Mount(device, dir, kind string, options []string) error {
	bits, data := split(options)
	if err := unix.Mount(device, dir, kind, bits, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", device, dir, err)
	}
	return nil
}

// Damaged reports whether an error of Mount says that the file system needs a repair.
func Damaged(err error) bool {
	return errors.Is(err, unix.EUCLEAN) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EINVAL)
}

// Bind mounts source (a directory or a file) at target of the same kind, read-only if so asked.
func Bind(source, target string, readOnly bool, options []string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", source, target, err)
	}
	bits, _ := split(options)
	if readOnly {
		bits |= unix.MS_RDONLY
	}
	if bits == 0 {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|bits, ""); err != nil {
		_ = unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// IsBlock reports whether path is a block device, and its size in bytes.
func IsBlock(path string) (size int64, ok bool) {
	st, err := os.Stat(path)
	if err != nil || st.Mode()&os.ModeDevice == 0 || st.Mode()&os.ModeCharDevice != 0 {
		return 0, false
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, true
	}
	defer f.Close() //nolint:errcheck // only read
	size, _ = f.Seek(0, 2)
	return size, true
}

const (
	fiFreeze = 0xC0045877 // FIFREEZE
	fiThaw   = 0xC0045878 // FITHAW
)

// Freeze writes everything of the file system at dir to its device and holds new
// writes until thaw is called.
func Freeze(dir string) (thaw func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetInt(int(f.Fd()), fiFreeze, 0); err != nil {
		f.Close() //nolint:errcheck // only referred to
		return nil, fmt.Errorf("freeze %s: %w", dir, err)
	}
	return func() error {
		defer f.Close() //nolint:errcheck // only referred to
		return unix.IoctlSetInt(int(f.Fd()), fiThaw, 0)
	}, nil
}

func ioctlUint64(f *os.File, request uintptr, value *uint64) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(value)))
	runtime.KeepAlive(value)
	if errno != 0 {
		return errno
	}
	return nil
}
