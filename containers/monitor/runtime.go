package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/namespace"
	"github.com/periplus/periplus/linux/process"
)

// call runs the OCI runtime to its end. On failure the error is what the
// runtime logged. files become descriptors 0, 1 and 2 of the runtime and, for
// run and exec, of the container's process.
func (s *Server) call(ctx context.Context, oci OCI, logFile string, files [3]*os.File, args ...string) error {
	argv := append([]string{oci.Path, "--root", oci.Root, "--log", logFile, "--log-format", "json"}, args...)
	attr := &syscall.ProcAttr{
		Env:   []string{"PATH=" + os.Getenv("PATH")},
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	fork := func() (int, error) { return syscall.ForkExec(oci.Path, argv, attr) }
	if cgroup.Detect() == cgroup.Hybrid {
		fork = withoutUnified(fork)
	}
	defer os.Remove(logFile)
	pid, ended, err := s.reaper.spawn(fork)
	if err != nil {
		return fmt.Errorf("start OCI runtime %s: %w", oci.Path, err)
	}
	var status syscall.WaitStatus
	select {
	case status = <-ended:
	case <-ctx.Done():
		_ = s.reaper.signal(pid, syscall.SIGKILL)
		<-ended
		return fmt.Errorf("%s %s: %w", filepath.Base(oci.Path), args[0], ctx.Err())
	}
	if code := process.ExitCode(status); code != 0 {
		text := lastError(logFile)
		if text == "" {
			text = fmt.Sprintf("exit code %d", code)
		}
		return errors.New(text)
	}
	return nil
}

func withoutUnified(fork func() (int, error)) func() (int, error) {
	return func() (pid int, err error) {
		err = namespace.WithoutUnified(func() (err error) {
			pid, err = fork()
			return err
		})
		return pid, err
	}
}

// lastError returns the last error in an OCI runtime's JSON log.
func lastError(path string) string {
	b, _ := os.ReadFile(path)
	text := ""
	for line := range bytes.Lines(b) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) == nil && entry.Level == "error" {
			text = entry.Msg
		}
	}
	return text
}

func readPID(path string) (int, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// writeJSON replaces path at once. It is not synced: after a power loss no
// container runs, and what cannot be read is treated as ended and unknown.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
