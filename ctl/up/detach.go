package up

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

const (
	// notifyEnv names the descriptor on which the background process reports.
	notifyEnv = "PERI_NOTIFY_FD"
	readyLine = "ready\n"
)

// detach starts this command again in a session of its own, shows its progress
// and returns when the node is ready. When the process ends before, the end of
// its log is the error.
func (o *options) detach(cmd *cobra.Command) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the running binary: %w", err)
	}
	logPath := filepath.Join(o.config.RunDir, "peri.log")
	if err := os.MkdirAll(o.config.RunDir, 0o700); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	defer logFile.Close()
	report, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()
	child := exec.Command(exe, foreground(os.Args[1:])...) //nolint:noctx // it outlives this command
	child.Stdout, child.Stderr = logFile, logFile
	child.ExtraFiles = []*os.File{write}
	child.Env = append(os.Environ(), notifyEnv+"=3")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	_ = write.Close()
	ready := false
	lines := bufio.NewScanner(report)
	for lines.Scan() {
		if lines.Text()+"\n" == readyLine {
			ready = true
			break
		}
		fmt.Fprintln(cmd.OutOrStdout(), lines.Text())
	}
	if !ready {
		err := child.Wait()
		return fmt.Errorf("%s (log: %s)", lastError(logPath, err), logPath)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "The cluster is ready.  export KUBECONFIG=%s\n", o.config.AdminKubeconfig())
	return child.Process.Release()
}

// foreground drops -d and --detach from the arguments.
func foreground(args []string) []string {
	var out []string
	for _, a := range args {
		if a != "-d" && a != "--detach" && a != "--detach=true" && a != "--merge-kubeconfig" && a != "--merge-kubeconfig=true" {
			out = append(out, a)
		}
	}
	return out
}

// lastError is the background process's own message, the line after "peri: ".
func lastError(logPath string, err error) string {
	data, readErr := os.ReadFile(logPath)
	if readErr == nil {
		if _, message, ok := strings.Cut("\n"+string(data), "\nperi: "); ok {
			return strings.TrimSpace(message)
		}
	}
	return errors.Join(errors.New("peri ended before the node was ready"), err).Error()
}

// notifier returns the pipe to the process that waits for this one, or nil.
func notifier() *os.File {
	if os.Getenv(notifyEnv) != "3" {
		return nil
	}
	_ = os.Unsetenv(notifyEnv)
	syscall.CloseOnExec(3)
	return os.NewFile(3, "notify")
}
