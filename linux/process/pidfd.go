package process

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pidfdInfoExit asks PIDFD_GET_INFO for the exit status; Linux 6.15 and later
// keep it for as long as somebody holds a pidfd.
const pidfdInfoExit = 1 << 3

// A Handle refers to a process, whoever its parent is, and stays valid after its end.
type Handle struct{ file *os.File }

// Open returns a handle on pid. The file is registered with the runtime's
// poller, so that a waiting goroutine holds no thread.
func Open(pid int) (*Handle, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pidfd of process %d: %w", pid, err)
	}
	return &Handle{os.NewFile(uintptr(fd), "pidfd")}, nil
}

// Wait blocks until the process has ended or the handle is closed.
func (h *Handle) Wait() error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var pollErr error
	err = conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		if err != nil && err != unix.EINTR {
			pollErr = err
			return true
		}
		return n > 0
	})
	if err == nil {
		err = pollErr
	}
	return err
}

// ExitStatus returns how a process ended that is not our child; ok is false
// where the kernel does not tell.
func (h *Handle) ExitStatus() (status syscall.WaitStatus, ok bool) {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return 0, false
	}
	info := unix.PidfdInfo{Mask: pidfdInfoExit}
	_ = conn.Control(func(fd uintptr) { err = unix.IoctlPidfdInfo(int(fd), &info) })
	if err != nil || info.Mask&pidfdInfoExit == 0 {
		return 0, false
	}
	return syscall.WaitStatus(info.Exit_code), true
}

// Signal sends a signal to exactly this process.
func (h *Handle) Signal(sig syscall.Signal) error {
	conn, err := h.file.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	if err := conn.Control(func(fd uintptr) { sendErr = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	return sendErr
}

// Close lets go of the process.
func (h *Handle) Close() error { return h.file.Close() }

// ExitCode is the code that shells and the CRI show: the process's own, or 128
// plus the signal that ended it.
func ExitCode(w syscall.WaitStatus) int {
	if w.Signaled() {
		return 128 + int(w.Signal())
	}
	return w.ExitStatus()
}

// SetSubreaper makes orphaned descendants children of the calling process.
func SetSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
