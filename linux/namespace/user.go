package namespace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A User says which IDs of the machine a user namespace has: one range of users and one
// of groups, each beginning with root.
type User struct {
	UID, GID   uint32 // of the namespace's root, on the machine
	UIDs, GIDs uint32 // how many
	// Holder is a program that does nothing. A user namespace is made with a process
	// in it: a thread of a Go program cannot enter one.
	Holder []string `json:"-"`
}

// createOwned is Create with a user namespace that owns the others.
func createOwned(pins Pins, s Settings) (err error) {
	if s.User == nil || len(s.User.Holder) == 0 {
		return errors.New("user namespace: no IDs or no program given")
	}
	u := s.User
	attr := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(u.UID), Size: int(u.UIDs)}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(u.GID), Size: int(u.GIDs)}},
		// Its parent may die in between.
		Pdeathsig:                  syscall.SIGKILL,
		GidMappingsEnableSetgroups: true,
	}
	files := map[string]string{"user": pins.User}
	for _, p := range []struct {
		kind, path string
		flag       uintptr
	}{{"net", pins.Net, unix.CLONE_NEWNET}, {"ipc", pins.IPC, unix.CLONE_NEWIPC}, {"uts", pins.UTS, unix.CLONE_NEWUTS}} {
		if p.path != "" {
			attr.Cloneflags |= p.flag
			files[p.kind] = p.path
		}
	}
	return OnThread(func() error {
		// The thread that Pdeathsig looks at is this one, which waits.
		p, err := os.StartProcess(u.Holder[0], u.Holder, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{nil, nil, nil}, Sys: attr})
		if err != nil {
			return fmt.Errorf("make a user namespace: %w", err)
		}
		defer func() {
			_ = p.Kill()
			_, _ = p.Wait()
		}()
		for kind, path := range files {
			if err := pin(fmt.Sprintf("/proc/%d/ns/%s", p.Pid, kind), path); err != nil {
				return errors.Join(err, pins.Unpin())
			}
		}
		if err := s.applyIn(pins); err != nil {
			return errors.Join(err, pins.Unpin())
		}
		return nil
	})
}

// applyIn enters the namespaces, though not the user namespace, and makes the settings.
func (s Settings) applyIn(pins Pins) error {
	return OnThread(func() error {
		for path, flag := range map[string]int{pins.Net: unix.CLONE_NEWNET, pins.IPC: unix.CLONE_NEWIPC, pins.UTS: unix.CLONE_NEWUTS} {
			if path == "" {
				continue
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			err = unix.Setns(int(f.Fd()), flag)
			f.Close()
			if err != nil {
				return fmt.Errorf("enter namespace %s: %w", path, err)
			}
		}
		first := s
		first.Sysctls = nil
		if err := first.apply(pins); err != nil {
			return err
		}
		// Some are for whoever has power over the namespace, some for its root alone.
		refused := map[string]string{}
		for name, value := range s.Sysctls {
			err := setSysctls(map[string]string{name: value})
			if errors.Is(err, os.ErrPermission) {
				refused[name] = value
			} else if err != nil {
				return err
			}
		}
		if len(refused) == 0 {
			return nil
		}
		const keep = ^uintptr(0)
		// Of this thread alone, which ends here.
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(s.User.UID), keep); e != 0 {
			return fmt.Errorf("become root of a user namespace: %w", e)
		}
		return setSysctls(refused)
	})
}

// UsersSupported returns nil if pods can have user namespaces: the kernel makes them,
// and overlayfs takes layers whose IDs are mapped (Linux 5.19).
func UsersSupported() error {
	limit, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	if err != nil {
		return errors.New("the kernel has no user namespaces")
	}
	if n, _ := strconv.Atoi(strings.TrimSpace(string(limit))); n == 0 {
		return errors.New("user.max_user_namespaces is 0")
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	release := string(uts.Release[:max(0, bytes.IndexByte(uts.Release[:], 0))])
	var major, minor int
	_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor)
	if major < 5 || major == 5 && minor < 19 {
		return fmt.Errorf("user namespaces of pods need Linux 5.19, this is %s", release)
	}
	return nil
}
