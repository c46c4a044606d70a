package overlay

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Options describe one mount.
type Options struct {
	Lower []string // lower directories, the topmost first; at least one, two without Upper
	Upper string   // writable directory; "" mounts read-only
	Work  string   // empty directory on the file system of Upper
	Extra []string // further options: "index=off"
}

// IsOverlay reports whether path is on an overlayfs.
func IsOverlay(path string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return st.Type == unix.OVERLAYFS_SUPER_MAGIC, nil
}

// Supported returns nil if the kernel knows overlayfs and we may mount it.
func Supported() error {
	fd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ENODEV):
		return errors.New("the kernel has no overlayfs (load the module: modprobe overlay)")
	case errors.Is(err, unix.EPERM):
		return errors.New("mounting overlayfs needs root (CAP_SYS_ADMIN)")
	default:
		return fmt.Errorf("fsopen overlay: %w", err)
	}
}

// DefaultExtra are the options that suit shared lower directories: the inode
// index ties an upper directory to one set of lowers and is switched off where
// the kernel has it.
func DefaultExtra() []string {
	if _, err := os.Stat("/sys/module/overlay/parameters/index"); err == nil {
		return []string{"index=off"}
	}
	return nil
}

// Mount mounts an overlay at target.
func Mount(target string, o Options) error {
	flags := uintptr(0)
	if o.Upper == "" {
		flags = unix.MS_RDONLY
	}
	data := o.data(o.Lower)
	if len(data) < os.Getpagesize() {
		return wrap(target, unix.Mount("overlay", target, "overlay", flags, data))
	}
	err := o.mountByLayer(target)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return wrap(target, err)
	}
	return wrap(target, o.mountByFD(target, flags))
}

// mountByLayer adds one lower directory a call.
func (o Options) mountByLayer(target string) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	set := func(key, value string) {
		if err == nil {
			err = unix.FsconfigSetString(fs, key, value)
		}
	}
	set("source", "overlay")
	for _, l := range o.Lower {
		set("lowerdir+", l)
	}
	if o.Upper != "" {
		set("upperdir", o.Upper)
		set("workdir", o.Work)
	} else if err == nil {
		err = unix.FsconfigSetFlag(fs, "ro")
	}
	for _, x := range o.Extra {
		key, value, _ := strings.Cut(x, "=")
		set(key, value)
	}
	if err == nil {
		err = unix.FsconfigCreate(fs)
	}
	if err != nil {
		return err
	}
	attr := 0
	if o.Upper == "" {
		attr = unix.MOUNT_ATTR_RDONLY
	}
	m, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return err
	}
	defer unix.Close(m)
	return unix.MoveMount(m, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mountByFD names the lower directories by descriptor.
func (o Options) mountByFD(target string, flags uintptr) error {
	short := make([]string, len(o.Lower))
	for i, l := range o.Lower {
		fd, err := unix.Open(l, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: l, Err: err}
		}
		defer unix.Close(fd)
		short[i] = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	data := o.data(short)
	if len(data) >= os.Getpagesize() {
		return fmt.Errorf("%d layers are more than this kernel can mount: %w", len(o.Lower), unix.E2BIG)
	}
	return unix.Mount("overlay", target, "overlay", flags, data)
}

var (
	escapeLower = strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)
	escapeUpper = strings.NewReplacer(`\`, `\\`, `,`, `\,`)
)

// data is the option string of mount(2).
func (o Options) data(lower []string) string {
	var b strings.Builder
	b.WriteString("lowerdir=")
	for i, l := range lower {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(escapeLower.Replace(l))
	}
	if o.Upper != "" {
		b.WriteString(",upperdir=" + escapeUpper.Replace(o.Upper) + ",workdir=" + escapeUpper.Replace(o.Work))
	}
	for _, x := range o.Extra {
		b.WriteString("," + x)
	}
	return b.String()
}

// Unmount takes the mount at target away; processes that still use it keep it
// until they end. It is no error if nothing is mounted there.
func Unmount(target string) error {
	err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "unmount", Path: target, Err: err}
}

func wrap(target string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mount overlay at %s: %w", target, err)
}
