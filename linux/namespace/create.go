package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Pins are the files that new namespaces get bound to. An empty path means that
// no such namespace is made.
type Pins struct {
	Net, IPC, UTS string
	// User owns the others.
	User string `json:",omitempty"`
}

// Settings are made inside before anybody else can enter.
type Settings struct {
	Hostname string            // needs a UTS namespace of its own
	Sysctls  map[string]string // "net.ipv4.ip_forward" or "net/ipv4/ip_forward" → value
	// User says what the IDs of a user namespace are; only with Pins.User.
	User *User
}

// Create makes the namespaces, brings the loopback interface up and pins them.
// On error nothing is left behind.
func Create(pins Pins, s Settings) error {
	if pins.User != "" {
		return createOwned(pins, s)
	}
	flags, files := 0, map[string]string{}
	for _, p := range []struct {
		kind, path string
		flag       int
	}{{"net", pins.Net, unix.CLONE_NEWNET}, {"ipc", pins.IPC, unix.CLONE_NEWIPC}, {"uts", pins.UTS, unix.CLONE_NEWUTS}} {
		if p.path != "" {
			flags |= p.flag
			files[p.kind] = p.path
		}
	}
	if flags == 0 && len(s.Sysctls) == 0 {
		return nil
	}
	return OnThread(func() error {
		if err := unix.Unshare(flags); err != nil {
			return fmt.Errorf("unshare namespaces: %w", err)
		}
		if err := s.apply(pins); err != nil {
			return err
		}
		for kind, path := range files {
			if err := pin("/proc/thread-self/ns/"+kind, path); err != nil {
				return errors.Join(err, pins.Unpin())
			}
		}
		return nil
	})
}

// apply makes the settings in the namespaces of this thread.
func (s Settings) apply(pins Pins) error {
	if pins.UTS != "" && s.Hostname != "" {
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("set host name %q: %w", s.Hostname, err)
		}
	}
	if pins.Net != "" {
		if err := loopbackUp(); err != nil {
			return err
		}
	}
	return setSysctls(s.Sysctls)
}

func pin(source, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	f.Close()
	if err := unix.Mount(source, path, "", unix.MS_BIND, ""); err != nil {
		os.Remove(path)
		return &os.PathError{Op: "pin namespace", Path: path, Err: err}
	}
	return nil
}

// Unpin lets go of all of them; those that are gone already are no error.
func (p Pins) Unpin() error {
	var errs []error
	for _, path := range []string{p.Net, p.IPC, p.UTS, p.User} {
		if path != "" {
			errs = append(errs, Unpin(path))
		}
	}
	return errors.Join(errs...)
}

// Intact reports whether every file of p is still bound to a namespace.
func (p Pins) Intact() bool {
	return !slices.ContainsFunc([]string{p.Net, p.IPC, p.UTS, p.User}, func(path string) bool {
		return path != "" && !Pinned(path)
	})
}

// Unpin removes one pin.
func Unpin(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return &os.PathError{Op: "unmount", Path: path, Err: err}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Pinned reports whether a namespace is bound to path.
func Pinned(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Type == unix.NSFS_MAGIC
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback interface: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("set loopback interface up: %w", err)
	}
	return nil
}

func setSysctls(sysctls map[string]string) error {
	for name, value := range sysctls {
		path := name
		if !strings.Contains(name, "/") {
			path = strings.ReplaceAll(name, ".", "/")
		}
		path = filepath.Join("/proc/sys", filepath.Clean("/"+path))
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set sysctl %s=%s: %w", name, value, err)
		}
	}
	return nil
}
