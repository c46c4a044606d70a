package netnstest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/periplus/periplus/linux/netns"
)

// Run calls f on a locked thread in a fresh network namespace. What f opens
// there (sockets, listeners) stays there; goroutines that it starts are outside.
// Without root the test is skipped.
func Run(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and with it, if
		// nothing else holds it, the namespace.
		runtime.LockOSThread()
		finished := false
		defer func() {
			if !finished { // t.FailNow ended the goroutine
				done <- nil
			}
		}()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			finished = true
			done <- fmt.Errorf("new network namespace: %w", err)
			return
		}
		if err := loopback(); err != nil {
			finished = true
			done <- err
			return
		}
		f()
		finished = true
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// A Namespace is one more network namespace, pinned at Path until the test ends.
type Namespace struct{ Path string }

// New makes a namespace with nothing in it, loopback down, as a pod's sandbox has it.
func New(t testing.TB) *Namespace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "netns")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	}()
	if err := <-done; err != nil {
		t.Fatalf("pin a network namespace: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Errorf("unpin network namespace: %v", err)
		}
	})
	return &Namespace{Path: path}
}

// Do runs f in the namespace.
func (n *Namespace) Do(t testing.TB, f func() error) {
	t.Helper()
	ns, err := netns.Open(n.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return netlink.LinkSetUp(lo)
}
