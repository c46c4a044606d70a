package volumetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/volume"
)

// A Case is a volume that a plug-in must be able to set up.
type Case struct {
	Plugin  volume.Plugin
	Volume  corev1.Volume
	Sources *Sources // nil: none
	Root    bool     // needs to be root
	// Want is the expected content, by path below the volume; nil: not checked.
	Want map[string]string
}

// Run checks what every plug-in owes its Host.
func Run(t *testing.T, c Case) {
	t.Helper()
	if c.Root && os.Geteuid() != 0 {
		t.Skip("mounts a tmpfs: needs root")
	}
	if c.Sources == nil {
		c.Sources = NewSources()
	}
	c.Volume.Name = "v"
	r := volume.Request{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pod", UID: "uid", Labels: map[string]string{"app": "web"},
		}},
		Volume: &c.Volume, Dir: filepath.Join(t.TempDir(), "deep", "v"), Sources: c.Sources,
	}
	ctx := context.Background()
	t.Cleanup(func() {
		if err := c.Plugin.TearDown(ctx, r.Dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})

	if !c.Plugin.Supports(&c.Volume) || c.Plugin.Supports(&corev1.Volume{Name: "other"}) {
		t.Error("Supports: must be true for the volume and false for a volume without a source")
	}
	if !strings.HasPrefix(c.Plugin.Name(), "kubernetes.io/") {
		t.Errorf("Name: %q lacks its domain", c.Plugin.Name())
	}
	if err := c.Plugin.TearDown(ctx, r.Dir); err != nil {
		t.Errorf("TearDown of nothing: %v", err)
	}
	first, err := c.Plugin.SetUp(ctx, r)
	if err != nil {
		t.Fatalf("SetUp: %v", err)
	}
	Equal(t, first.HostPath, c.Want)
	again, err := c.Plugin.SetUp(ctx, r)
	if err != nil || again.HostPath != first.HostPath {
		t.Errorf("SetUp again: %v, %v; first %v", again, err, first)
	}
	Equal(t, first.HostPath, c.Want)
	if err := c.Plugin.TearDown(ctx, r.Dir); err != nil {
		t.Fatalf("TearDown: %v", err)
	}
	if _, err := os.Lstat(r.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after TearDown %s is still there (%v)", r.Dir, err)
	}
}

// Equal fails t unless the files that a container sees in dir are exactly want;
// nil is not checked.
func Equal(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if want == nil {
		return
	}
	got := Files(t, dir)
	for path, data := range want {
		if have, ok := got[path]; !ok || have != data {
			t.Errorf("%s: got %q (present: %v), want %q", path, have, ok, data)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: unexpected", path)
		}
	}
}

// Files reads what is in a volume, through its links, leaving out the names that begin with "..".
func Files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(rel string)
	walk = func(rel string) {
		entries, err := os.ReadDir(filepath.Join(dir, rel))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "..") {
				continue
			}
			path := filepath.Join(rel, e.Name())
			info, err := os.Stat(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(path)
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			out[path] = string(data)
		}
	}
	walk("")
	return out
}
