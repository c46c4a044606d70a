package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Fifo makes a named pipe for the owner alone unless it exists.
func Fifo(path string) error {
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	return nil
}

// SetWinsize tells the kernel the size of a terminal; its foreground process gets SIGWINCH.
func SetWinsize(f *os.File, rows, columns uint16) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var ioctlErr error
	err = conn.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
	if err == nil {
		err = ioctlErr
	}
	return err
}

// Lock takes an exclusive lock on path, creating it, and fails at once when
// another process has it. The lock lives as long as the file is open.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}
