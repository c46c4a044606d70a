package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// systemctl runs systemctl and adds what it says to its error.
func systemctl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// noSystemd says why units cannot be started here; empty if they can.
func noSystemd() string {
	if _, err := os.Stat("/run/systemd/system"); errors.Is(err, os.ErrNotExist) {
		return "systemd does not run on this machine (there is no /run/systemd/system)"
	}
	if _, err := exec.LookPath("systemctl"); err != nil {
		return "there is no systemctl on this machine"
	}
	return ""
}
