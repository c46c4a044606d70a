package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/periplus/periplus/containers/monitor"
	"github.com/periplus/periplus/containers/oci"
)

const (
	// maxSyncOutput is how much of each stream ExecSync returns (CVE-2022-1708);
	// the rest is read and dropped.
	maxSyncOutput = 16 << 20
	// drainTime is how long output may still come after a process has ended,
	// from children that hold its streams.
	drainTime = 250 * time.Millisecond
)

// ExecSync runs a command and returns its output.
func (r *Runtime) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	c, err := r.running(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	if t := req.GetTimeout(); t > 0 {
		limit := time.Duration(t) * time.Second
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit,
			status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %v exceeded: context deadline exceeded", limit))
		defer cancel()
	}
	var stdout, stderr limitedBuffer
	code, err := r.exec(ctx, c, execution{cmd: req.GetCmd(), out: &stdout, err: &stderr})
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, status.Errorf(codes.Unknown, "failed to exec in container: %v", err)
	}
	return &runtimeapi.ExecSyncResponse{Stdout: stdout.b, Stderr: stderr.b, ExitCode: int32(code)}, nil
}

type limitedBuffer struct{ b []byte }

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), maxSyncOutput-len(l.b))]...)
	return len(p), nil
}

// Exec, Attach and PortForward return URLs of the streaming server.
func (r *Runtime) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if _, err := r.running(req.GetContainerId()); err != nil {
		return nil, err
	}
	return r.stream.GetExec(req)
}

func (r *Runtime) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if _, err := r.running(req.GetContainerId()); err != nil {
		return nil, err
	}
	return r.stream.GetAttach(req)
}

func (r *Runtime) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	s, err := r.sandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	if s.phase() != phaseReady {
		return nil, status.Errorf(codes.FailedPrecondition, "sandbox container %q is not running", s.rec.ID)
	}
	return r.stream.GetPortForward(req)
}

func (r *Runtime) running(id string) (*container, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	if state, _ := c.snapshotState(); state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.FailedPrecondition, "container is in %s state", state)
	}
	return c, nil
}

// processFiles are short-lived files in the run directory, one a command.
const processFiles = "process-*.json"

// execution is one command with its streams; nil streams are closed.
type execution struct {
	cmd      []string
	tty      bool
	in       io.Reader
	out, err io.Writer
	resize   <-chan remotecommand.TerminalSize
}

// exec runs a command to its end and returns its exit code. When ctx ends the
// command is killed.
func (r *Runtime) exec(ctx context.Context, c *container, e execution) (int, error) {
	r.monitor.wait(ctx)
	f, err := os.CreateTemp(r.cfg.RunDir, processFiles)
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(json.NewEncoder(f).Encode(oci.ExecProcess(c.rec.Process, e.cmd, e.tty)), f.Close()); err != nil {
		return 0, err
	}
	req := monitor.ExecRequest{ID: c.rec.ID, OCI: r.oci, Process: f.Name()}
	if e.tty {
		return r.execTTY(ctx, req, e)
	}
	return r.execPipes(ctx, req, e)
}

// execPipes connects a command by pipes; the monitor only passes them on.
func (r *Runtime) execPipes(ctx context.Context, req monitor.ExecRequest, e execution) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	theirs := [3]*os.File{null, null, null}
	var ours []*os.File
	defer func() { closeFiles(append(ours, theirs[:]...)) }()
	var input *os.File
	if e.in != nil {
		if theirs[0], input, err = os.Pipe(); err != nil {
			return 0, err
		}
		ours = append(ours, input)
	}
	var copies sync.WaitGroup
	var outputs []*os.File
	for i, w := range []io.Writer{e.out, e.err} {
		if w == nil {
			continue
		}
		pr, pw, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		ours, outputs, theirs[i+1] = append(ours, pr), append(outputs, pr), pw
		copies.Go(func() { copyOut(w, pr) })
	}
	p, err := r.client.Exec(ctx, req, theirs[0], theirs[1], theirs[2])
	closeFiles(theirs[:])
	if err != nil {
		copies.Wait() // nobody holds the other ends
		return 0, execFailed(err)
	}
	if input != nil {
		// Not waited for: the client's stream ends only when it hangs up.
		go func() {
			_, _ = io.Copy(input, e.in)
			input.Close()
		}()
	}
	exit, err := p.Wait(ctx)
	for _, f := range outputs {
		_ = f.SetReadDeadline(time.Now().Add(drainTime))
	}
	copies.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return exit.Code, err
}

func execFailed(err error) error { return fmt.Errorf("OCI runtime exec failed: %w", explain(err)) }

// copyOut goes on reading when the reader of w is gone, so that the command can
// end as it likes.
func copyOut(w io.Writer, f *os.File) {
	if _, err := io.Copy(w, f); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		_, _ = io.Copy(io.Discard, f)
	}
}

// execTTY gives a command a terminal, whose master end comes to us.
func (r *Runtime) execTTY(ctx context.Context, req monitor.ExecRequest, e execution) (int, error) {
	console, err := monitor.ListenConsole(r.cfg.RunDir)
	if err != nil {
		return 0, err
	}
	defer console.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	req.ConsoleSocket = console.Path
	p, err := r.client.Exec(ctx, req, null, null, null)
	if err != nil {
		return 0, execFailed(err)
	}
	master, err := console.Receive()
	if err != nil {
		return 0, err
	}
	defer master.Close()
	done := make(chan struct{})
	var resizes, copies sync.WaitGroup
	resizes.Go(func() { resizeLoop(done, e.resize, master.SetSize) })
	if e.out != nil {
		copies.Go(func() { copyOut(e.out, master.File) })
	}
	if e.in != nil {
		go func() { _, _ = io.Copy(master, e.in) }()
	}
	exit, err := p.Wait(ctx)
	_ = master.SetReadDeadline(time.Now().Add(drainTime))
	copies.Wait()
	close(done)
	resizes.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return exit.Code, err
}

func resizeLoop(done <-chan struct{}, sizes <-chan remotecommand.TerminalSize, set func(rows, columns uint16) error) {
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			_ = set(size.Height, size.Width)
		case <-done:
			return
		}
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// streamer is what the streaming server calls.
type streamer struct{ r *Runtime }

func (s streamer) Exec(ctx context.Context, id string, cmd []string, in io.Reader, out, stderr io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := s.r.running(id)
	if err != nil {
		return err
	}
	e := execution{cmd: cmd, tty: tty, in: in, resize: resize}
	// A nil WriteCloser must stay a nil Writer.
	if out != nil {
		e.out = out
	}
	if stderr != nil {
		e.err = stderr
	}
	code, err := s.r.exec(ctx, c, e)
	if err != nil {
		return fmt.Errorf("failed to exec in container: %w", err)
	}
	if code != 0 {
		return &utilexec.CodeExitError{Err: fmt.Errorf("error executing command %v, exit code %d", cmd, code), Code: code}
	}
	return nil
}

// Attach connects to a container's own streams until it ends or the client leaves.
func (s streamer) Attach(ctx context.Context, id string, in io.Reader, out, stderr io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := s.r.running(id)
	if err != nil {
		return err
	}
	s.r.monitor.wait(ctx)
	a, err := s.r.client.Attach(ctx, monitor.AttachRequest{
		ID: id, Stdin: in != nil && c.config.GetStdin(), Stdout: out != nil, Stderr: stderr != nil,
	})
	if err != nil {
		return err
	}
	defer a.Close()
	defer context.AfterFunc(ctx, func() { a.Close() })()
	done := make(chan struct{})
	var resizes sync.WaitGroup
	resizes.Go(func() {
		resizeLoop(done, resize, func(rows, columns uint16) error { return s.r.client.Resize(ctx, id, rows, columns) })
	})
	if in != nil {
		go func() {
			_, _ = io.Copy(a, in)
			_ = a.CloseStdin()
		}()
	}
	var stdout, stderrWriter io.Writer
	if out != nil {
		stdout = out
	}
	if stderr != nil {
		stderrWriter = stderr
	}
	err = a.Copy(stdout, stderrWriter)
	close(done)
	resizes.Wait()
	return err
}

func (s streamer) PortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error {
	return s.r.forward(ctx, sandboxID, port, conn)
}
