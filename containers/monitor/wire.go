package monitor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Protocol is raised when an older monitor cannot serve a newer client.
const Protocol = 1

// Operations. The fields of Request that each one needs are named beside it.
const (
	opHello   = "hello"   // → Reply.PID, Reply.Protocol
	opStart   = "start"   // Start → Reply.Container
	opExec    = "exec"    // Exec, files stdin, stdout, stderr → Reply.PID; later a Reply with Exit
	opSignal  = "signal"  // ID, Signal
	opAttach  = "attach"  // Attach; the connection then carries frames
	opReopen  = "reopen"  // ID: the log file has been moved away
	opResize  = "resize"  // ID, Rows, Columns
	opForget  = "forget"  // ID: an ended container that is being removed
	opOCI     = "oci"     // OCI: any other command of the OCI runtime
	opWatch   = "watch"   // → one Reply per container, one with Synced, then one per start and exit
	opQuit    = "quit"    // ends the monitor; refused while containers run
	opReplace = "replace" // Path: the monitor becomes another program and keeps its children
)

// Request is the first message of a connection.
type Request struct {
	Op      string         `json:"op"`
	ID      string         `json:"id,omitempty"`
	Signal  int            `json:"signal,omitempty"`
	Rows    uint16         `json:"rows,omitempty"`
	Columns uint16         `json:"columns,omitempty"`
	Path    string         `json:"path,omitempty"`
	Start   *StartRequest  `json:"start,omitempty"`
	Exec    *ExecRequest   `json:"exec,omitempty"`
	Attach  *AttachRequest `json:"attach,omitempty"`
	OCI     *OCIRequest    `json:"oci,omitempty"`
}

// OCI says how to call the OCI runtime.
type OCI struct {
	Path string `json:"path"` // of crun or runc
	Root string `json:"root"` // its state directory
}

// StartRequest starts a container from a bundle.
type StartRequest struct {
	ID        string `json:"id"`
	Dir       string `json:"dir"` // bundle; also for pipes and records
	OCI       OCI    `json:"oci"`
	LogPath   string `json:"logPath,omitempty"` // empty: output is dropped
	TTY       bool   `json:"tty,omitempty"`
	Stdin     bool   `json:"stdin,omitempty"`
	StdinOnce bool   `json:"stdinOnce,omitempty"` // stdin ends with the first attached client
	OOMFile   string `json:"oomFile,omitempty"`   // see cgroup.OOMFile
}

// ExecRequest runs a further process in a container.
type ExecRequest struct {
	ID            string `json:"id"`
	OCI           OCI    `json:"oci"`
	Process       string `json:"process"`                 // file with the OCI process
	ConsoleSocket string `json:"consoleSocket,omitempty"` // a tty's other end is sent there
}

// AttachRequest connects to a running container's streams.
type AttachRequest struct {
	ID     string `json:"id"`
	Stdin  bool   `json:"stdin,omitempty"`
	Stdout bool   `json:"stdout,omitempty"`
	Stderr bool   `json:"stderr,omitempty"`
}

// OCIRequest runs "<runtime> --root R args…" with input as standard input.
type OCIRequest struct {
	OCI   OCI      `json:"oci"`
	Args  []string `json:"args"`
	Input []byte   `json:"input,omitempty"`
}

// Container is what the monitor knows of one.
type Container struct {
	ID      string    `json:"id"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Exit    *Exit     `json:"exit,omitempty"` // nil while it runs
}

// Exit is how a process ended.
type Exit struct {
	Code    int       `json:"code"`
	Unknown bool      `json:"unknown,omitempty"` // nobody was there to see it
	OOM     bool      `json:"oom,omitempty"`     // the kernel killed in its cgroup
	At      time.Time `json:"at"`
}

// Reply answers a request, or is one item of its stream.
type Reply struct {
	Error     string     `json:"error,omitempty"`
	Missing   bool       `json:"missing,omitempty"` // with Error: no such container
	Protocol  int        `json:"protocol,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Container *Container `json:"container,omitempty"`
	Exit      *Exit      `json:"exit,omitempty"`
	Synced    bool       `json:"synced,omitempty"`
}

// Frames carry an attached client's streams, both ways: kind, length, bytes.
const (
	frameStdin byte = iota
	frameStdout
	frameStderr
	frameCloseStdin
)

const (
	maxMessage = 4 << 20
	maxFrame   = 64 << 10
	maxFiles   = 4
)

// sendMessage writes v, and files with its first byte.
func sendMessage(c *net.UnixConn, v any, files ...*os.File) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	msg := binary.BigEndian.AppendUint32(make([]byte, 0, len(body)+4), uint32(len(body)))
	msg = append(msg, body...)
	if len(files) == 0 {
		_, err = c.Write(msg)
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := c.WriteMsgUnix(msg, syscall.UnixRights(fds...), nil)
	if err == nil && n < len(msg) {
		_, err = c.Write(msg[n:])
	}
	return err
}

// receiveMessage reads into v and returns the files that came with it.
func receiveMessage(c *net.UnixConn, v any) ([]*os.File, error) {
	var head [4]byte
	oob := make([]byte, syscall.CmsgSpace(maxFiles*4))
	n, oobn, _, _, err := c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	files, err := parseFiles(oob[:oobn])
	if err == nil {
		_, err = io.ReadFull(c, head[n:])
	}
	size := binary.BigEndian.Uint32(head[:])
	if err == nil && size > maxMessage {
		err = fmt.Errorf("message of %d bytes is longer than %d", size, maxMessage)
	}
	if err == nil {
		body := make([]byte, size)
		if _, err = io.ReadFull(c, body); err == nil {
			err = json.Unmarshal(body, v)
		}
	}
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
}

func parseFiles(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func writeFrame(w io.Writer, kind byte, p []byte) error {
	for first := true; first || len(p) > 0; first = false {
		n := min(len(p), maxFrame)
		frame := make([]byte, 5, 5+n)
		frame[0] = kind
		binary.BigEndian.PutUint32(frame[1:], uint32(n))
		if _, err := w.Write(append(frame, p[:n]...)); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// readFrame returns a frame whose bytes are valid until buf is used again.
func readFrame(r io.Reader, buf []byte) (kind byte, p []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if int64(n) > int64(len(buf)) {
		return 0, nil, errors.New("frame is too long")
	}
	_, err = io.ReadFull(r, buf[:n])
	return head[0], buf[:n], err
}
