package bin_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/periplus/periplus/containers/monitor/bin"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bin")
	path, err := bin.Extract(dir)
	if errors.Is(err, bin.ErrMissing) {
		t.Skip("the monitor has not been generated")
	}
	if err != nil {
		t.Fatal(err)
	}
	if again, err := bin.Extract(dir); err != nil || again != path {
		t.Errorf("second time: %q, %v, want %q", again, err, path)
	}
	out, err := exec.Command(path).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "usage: monitor serve") {
		t.Errorf("without arguments it says %q, %v", out, err)
	}
}
