package namespace

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread runs fn on a thread of its own, which ends with it, and waits. It is
// never the main thread, which cannot end, and which /proc/self stands for.
func OnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// While we hold the main thread the next goroutine gets another one.
			done <- OnThread(fn)
			runtime.UnlockOSThread()
			return
		}
		// Never unlocked: the runtime ends the thread together with this goroutine.
		done <- fn()
	}()
	return <-done
}

// InNet runs fn inside the network namespace that path is bound to. Sockets
// that fn opens belong to it for good.
func InNet(path string, fn func() error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return OnThread(func() error {
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", path, err)
		}
		return fn()
	})
}

// WithoutUnified runs fn in a mount namespace that is a copy of the present one
// except that /sys/fs/cgroup/unified shows an empty file system: OCI runtimes
// then take a hybrid machine for a plain cgroup v1 one. Only the cgroup tree is
// made private; every other mount keeps its propagation in both directions, so
// that volumes with Bidirectional propagation work.
func WithoutUnified(fn func() error) error {
	return OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unshare mount namespace: %w", err)
		}
		if err := unix.Mount("", "/sys/fs/cgroup", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("make /sys/fs/cgroup private: %w", err)
		}
		// Covered rather than unmounted: the runtime makes its directories in
		// whatever is there, and here they vanish with the namespace.
		if err := unix.Mount("tmpfs", "/sys/fs/cgroup/unified", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755"); err != nil {
			return fmt.Errorf("cover /sys/fs/cgroup/unified: %w", err)
		}
		return fn()
	})
}
