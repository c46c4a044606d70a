package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// What a connection to a process's socket may say, one word a line.
const (
	// wordState asks for a state now and whenever it changes.
	wordState = "state"
	// wordSockets asks for the listening sockets.
	wordSockets = "sockets"
	// wordDrain ends the process when the requests under way have been answered.
	wordDrain = "drain"
)

// state is what a process says of itself.
type state struct {
	// Fingerprint tells versions and configurations apart.
	Fingerprint string `json:"fingerprint"`
	PID         int    `json:"pid"`
	// Taken are ports that could not be opened, and why.
	Taken map[int]string `json:"taken,omitempty"`
}

// maxSockets bounds what is handed over at once; the kernel's own limit is 253.
const maxSockets = 250

// sendSockets sends the addresses in a line, with the descriptors beside it.
func sendSockets(c *net.UnixConn, files map[string]*os.File) error {
	addresses := make([]string, 0, len(files))
	fds := make([]int, 0, len(files))
	for a, f := range files {
		if len(fds) == maxSockets {
			break
		}
		raw, err := f.SyscallConn() // Fd would make the socket block, also here
		if err != nil {
			return err
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil { //nolint:gosec // a descriptor
			return err
		}
		addresses = append(addresses, a)
	}
	line, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	_, _, err = c.WriteMsgUnix(append(line, '\n'), syscall.UnixRights(fds...), nil)
	return err
}

// receiveSockets is the other side of sendSockets.
func receiveSockets(c *net.UnixConn) (map[string]*os.File, error) {
	line, rights := make([]byte, 64<<10), make([]byte, syscall.CmsgSpace(4*maxSockets))
	n, m, _, _, err := c.ReadMsgUnix(line, rights)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:m])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "listener")) //nolint:gosec // a descriptor
		}
	}
	var addresses []string
	if err := json.Unmarshal(line[:n], &addresses); err != nil || len(addresses) != len(files) {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, fmt.Errorf("%d sockets came for %d addresses: %w", len(files), len(addresses), errors.Join(err, io.ErrUnexpectedEOF))
	}
	out := map[string]*os.File{}
	for i, a := range addresses {
		out[a] = files[i]
	}
	return out, nil
}

func say(c net.Conn, word string) error {
	_, err := io.WriteString(c, word+"\n")
	return err
}

// hear reads the next line of a connection as a state.
func hear(r *bufio.Reader) (*state, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	s := &state{}
	return s, json.Unmarshal(line, s)
}
