package process_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/periplus/periplus/linux/process"
)

func TestParseSignal(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]syscall.Signal{
		"SIGTERM": 15, "term": 15, "15": 15, "SIGQUIT": 3, "SIGRTMIN": 34, "SIGRTMIN+3": 37, "RTMAX-1": 63, "SIGCLD": syscall.SIGCHLD,
	} {
		if got, err := process.ParseSignal(s); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "65", "SIGFOO", "SIGRTMIN+31", "SIGRTMIN+x"} {
		if got, err := process.ParseSignal(s); err == nil {
			t.Errorf("%q: %d, want an error", s, got)
		}
	}
}

// TestHandle follows a process through its pidfd.
func TestHandle(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	id, err := process.Identify(cmd.Process.Pid)
	if err != nil || !id.Alive() {
		t.Fatalf("%+v, %v", id, err)
	}
	if parent, err := process.Parent(id.PID); err != nil || parent != os.Getpid() {
		t.Errorf("parent %d, %v", parent, err)
	}
	h, err := process.Open(id.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(); err != nil {
		t.Fatal(err)
	}
	if id.Alive() {
		t.Error("a zombie counts as alive")
	}
	_ = cmd.Wait()
	if status, ok := h.ExitStatus(); ok && process.ExitCode(status) != 143 {
		t.Errorf("exit code %d, want 143", process.ExitCode(status))
	}
	other := id
	other.Start++
	if other.Alive() {
		t.Error("another process of the same number counts as alive")
	}
}
