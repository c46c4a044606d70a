package loop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	control = "/dev/loop-control"
	major   = 7
	// attempts bounds how often a free device is looked for while others take it.
	attempts = 64
)

// Options of Attach.
type Options struct {
	ReadOnly bool
	// AutoClear detaches the device when its last user (a mount, an open file)
	// is gone. Without it Detach must be called.
	AutoClear bool
}

// attaching keeps two callers of this process from racing for one device.
var attaching sync.Mutex

// Available returns nil if this machine has loop devices, else why not.
func Available() error {
	f, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("loop devices: %w (load the kernel module loop)", err)
	}
	return f.Close()
}

// Attach makes a device of the file at path. The device is returned open: with
// AutoClear it lives only as long as somebody has it open or mounted.
func Attach(path string, o Options) (*os.File, error) {
	flags := os.O_RDWR
	if o.ReadOnly {
		flags = os.O_RDONLY
	}
	backing, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close() //nolint:errcheck // the device holds it
	ctl, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	defer ctl.Close() //nolint:errcheck // nothing was written
	attaching.Lock()
	defer attaching.Unlock()
	for range attempts {
		n, err := unix.IoctlRetInt(int(ctl.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := configure(n, backing, path, o)
		if errors.Is(err, unix.EBUSY) {
			continue // another process was quicker
		}
		return device, err
	}
	return nil, fmt.Errorf("find a free loop device for %s: %w", path, unix.EBUSY)
}

func configure(n int, backing *os.File, path string, o Options) (*os.File, error) {
	name := "/dev/loop" + strconv.Itoa(n)
	flags := os.O_RDWR
	if o.ReadOnly {
		flags = os.O_RDONLY
	}
	device, err := os.OpenFile(name, flags, 0)
	if errors.Is(err, os.ErrNotExist) {
		// Nobody makes device nodes in a /dev that is not devtmpfs.
		if err := unix.Mknod(name, unix.S_IFBLK|0o600, int(unix.Mkdev(major, uint32(n)))); err != nil && !errors.Is(err, unix.EEXIST) { //nolint:gosec // small
			return nil, fmt.Errorf("make %s: %w", name, err)
		}
		device, err = os.OpenFile(name, flags, 0)
	}
	if err != nil {
		return nil, err
	}
	c := unix.LoopConfig{Fd: uint32(backing.Fd())} //nolint:gosec // a descriptor
	copy(c.Info.File_name[:], path)
	if o.ReadOnly {
		c.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	if o.AutoClear {
		c.Info.Flags |= unix.LO_FLAGS_AUTOCLEAR
	}
	err = unix.IoctlLoopConfigure(int(device.Fd()), &c)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTTY) {
		err = configureOld(device, backing, &c.Info) // before Linux 5.8
	}
	if err != nil {
		device.Close() //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("attach %s to %s: %w", path, name, err)
	}
	return device, nil
}

func configureOld(device, backing *os.File, info *unix.LoopInfo64) error {
	fd := int(device.Fd())
	if err := unix.IoctlSetInt(fd, unix.LOOP_SET_FD, int(backing.Fd())); err != nil {
		return err
	}
	if err := unix.IoctlLoopSetStatus64(fd, info); err != nil {
		_ = unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0)
		return err
	}
	return nil
}

// Find returns the devices that the file at path is attached to.
func Find(path string) ([]string, error) {
	links, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, l := range links {
		b, err := os.ReadFile(l)
		if err != nil || strings.TrimSuffix(string(b), "\n") != path {
			continue // detached meanwhile, or another file
		}
		found = append(found, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(l))))
	}
	return found, nil
}

// Grow makes the device as large as its file has become.
func Grow(device string) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow %s: %w", device, err)
	}
	return nil
}

// Detach frees the device; if it is in use, as soon as its last user has gone. A
// device without a file is no error.
func Detach(device string) error {
	f, err := os.OpenFile(device, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach %s: %w", device, err)
	}
	return nil
}
