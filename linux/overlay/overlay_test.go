package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestForms mounts the same layers in each of the three forms: which one Mount
// takes depends on their number and on the kernel.
func TestForms(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts overlayfs")
	}
	for name, mount := range map[string]func(Options, string) error{
		"paths":       func(o Options, target string) error { return Mount(target, o) },
		"layers":      func(o Options, target string) error { return o.mountByLayer(target) },
		"descriptors": func(o Options, target string) error { return o.mountByFD(target, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), `a:b,c\d`)
			o := Options{Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work"), Extra: DefaultExtra()}
			for i := range 3 {
				o.Lower = append(o.Lower, filepath.Join(dir, fmt.Sprint(i)))
			}
			target := filepath.Join(dir, "target")
			for _, d := range append([]string{target, o.Upper, o.Work}, o.Lower...) {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for i, l := range o.Lower {
				if err := os.WriteFile(filepath.Join(l, "f"), []byte(fmt.Sprint(i)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := mount(o, target)
			defer func() { _ = Unmount(target) }()
			if err != nil {
				if name == "layers" {
					t.Skip("this kernel cannot: ", err)
				}
				t.Fatal(err)
			}
			if data, err := os.ReadFile(filepath.Join(target, "f")); err != nil || string(data) != "0" {
				t.Errorf("f is %q, %v; want the topmost", data, err)
			}
			if err := os.WriteFile(filepath.Join(target, "g"), nil, 0o600); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(o.Upper, "g")); err != nil {
				t.Error(err)
			}
			if on, err := IsOverlay(target); !on || err != nil {
				t.Errorf("IsOverlay: %v %v", on, err)
			}
			for range 2 {
				if err := Unmount(target); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
