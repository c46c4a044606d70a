package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ErrGone is returned when there is no network namespace at a path: it was
// unpinned, or never pinned.
var ErrGone = errors.New("no network namespace there")

// An NS is an open network namespace.
type NS struct{ file *os.File }

// Current returns the namespace of the calling thread.
func Current() (*NS, error) { return Open("/proc/thread-self/ns/net") }

// Open opens the namespace at a path: a bind mount, or /proc/<pid>/ns/net.
func Open(path string) (*NS, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	// A path whose mount is gone is a plain file.
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Type != unix.NSFS_MAGIC {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrGone)
	}
	return &NS{file: f}, nil
}

// Fd is the namespace's file descriptor, valid until Close.
func (n *NS) Fd() int { return int(n.file.Fd()) }

// Close closes the descriptor.
func (n *NS) Close() error { return n.file.Close() }

// Do runs f in the namespace, on a thread that nothing else runs on. Goroutines
// that f starts are not in it.
func (n *NS) Do(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("network namespace of this thread: %w", err)
	}
	defer home.Close()
	if err := unix.Setns(n.Fd(), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace: %w", err)
	}
	defer func() {
		// A thread that cannot go back must not serve others: left locked, it ends
		// with its goroutine.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}
