package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Processes returns the pids in a group and the groups below it.
func Processes(path string) []int {
	var pids []int
	seen := map[int]bool{}
	for _, dir := range Dirs(path) {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			for _, f := range fields(filepath.Join(p, "cgroup.procs")) {
				if pid, err := strconv.Atoi(f); err == nil && pid > 0 && !seen[pid] {
					seen[pid] = true
					pids = append(pids, pid)
				}
			}
			return nil
		})
		if len(pids) > 0 {
			break // a container is in the same group of every hierarchy
		}
	}
	return pids
}

// Kill ends every process in a group and the groups below it with SIGKILL.
func Kill(path string) {
	if Detect() == V2 && os.WriteFile(filepath.Join(Dir("", path), "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	// Processes may fork while they are being killed: go on until none is new.
	killed := map[int]bool{}
	for again := true; again; {
		again = false
		for _, pid := range Processes(path) {
			if !killed[pid] {
				killed[pid], again = true, true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// Empty kills what is in a group and waits until everything has ended.
func Empty(ctx context.Context, path string) error {
	Kill(path)
	for _, pid := range Processes(path) {
		fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
		if err != nil {
			continue
		}
		f := os.NewFile(uintptr(fd), "pidfd")
		stop := context.AfterFunc(ctx, func() { f.Close() })
		if conn, err := f.SyscallConn(); err == nil {
			_ = conn.Read(func(fd uintptr) bool {
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return n > 0 || err != nil && err != unix.EINTR
			})
		}
		if stop() {
			f.Close()
		}
	}
	return ctx.Err()
}

// Remove removes a group and those below it from every hierarchy. It is no
// error if there is none.
func Remove(path string) error {
	if filepath.Clean("/"+path) == "/" {
		return errors.New("refusing to remove the root cgroup")
	}
	var errs []error
	for _, dir := range Dirs(path) {
		errs = append(errs, removeTree(dir))
	}
	return errors.Join(errs...)
}

func removeTree(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
		return &os.PathError{Op: "remove cgroup", Path: dir, Err: err}
	}
	return nil
}
