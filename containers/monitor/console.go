package monitor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/process"
)

// A ConsoleSocket is where an OCI runtime sends a new tty's master end.
type ConsoleSocket struct {
	Path string
	l    *net.UnixListener
}

// ListenConsole makes one in dir.
func ListenConsole(dir string) (*ConsoleSocket, error) {
	f, err := os.CreateTemp(dir, "tty-")
	if err != nil {
		return nil, err
	}
	path := f.Name()
	f.Close()
	os.Remove(path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &ConsoleSocket{path, l}, nil
}

// Close removes the socket.
func (s *ConsoleSocket) Close() error { return s.l.Close() }

// Receive returns the master end. It is called after the runtime has ended: what it sent is there.
func (s *ConsoleSocket) Receive() (*Console, error) {
	_ = s.l.SetDeadline(time.Now().Add(5 * time.Second))
	conn, err := s.l.AcceptUnix()
	if err != nil {
		return nil, fmt.Errorf("receive console: %w", err)
	}
	defer conn.Close()
	buf, oob := make([]byte, 4096), make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, fmt.Errorf("receive console: %w", err)
	}
	files, err := parseFiles(oob[:n])
	if err != nil || len(files) != 1 {
		closeAll(files)
		return nil, errors.Join(errors.New("OCI runtime sent no console"), err)
	}
	return newConsole(files[0])
}

// A Console is the master end of a tty. It is polled, so deadlines work.
type Console struct{ *os.File }

func newConsole(f *os.File) (*Console, error) {
	defer f.Close()
	// Only a file made from a non-blocking descriptor is polled.
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return &Console{os.NewFile(uintptr(fd), "console")}, nil
}

// SetSize tells the kernel, and with it the programs on the tty, its size.
func (c *Console) SetSize(rows, columns uint16) error {
	return process.SetWinsize(c.File, rows, columns)
}
