package cdi_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/periplus/periplus/containers/cdi"
)

// TestDevices asks for two devices of a kind, of which a later directory describes one
// anew, and for one that is not there.
func TestDevices(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "missing")}
	for path, text := range map[string]string{
		filepath.Join(dirs[0], "v.json"): `{"cdiVersion":"0.6.0","kind":"vendor.com/class","containerEdits":{"env":["KIND=1"]},"devices":[
			{"name":"one","containerEdits":{"env":["A=old"]}},
			{"name":"two","containerEdits":{"deviceNodes":[{"path":"/dev/two","hostPath":"/dev/null","permissions":"r"}],
				"mounts":[{"hostPath":"/lib","containerPath":"/vendor/lib","options":["ro"]}],
				"hooks":[{"hookName":"createContainer","path":"/bin/true","args":["true"]}],"additionalGids":[7]}}]}`,
		filepath.Join(dirs[1], "v.yaml"):      "cdiVersion: 0.6.0\nkind: vendor.com/class\ndevices:\n- name: one\n  containerEdits: {env: [A=new]}\n",
		filepath.Join(dirs[1], "broken.json"): "{",
		filepath.Join(dirs[1], "README"):      "no file of devices",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edits, err := cdi.Find(dirs, []string{"vendor.com/class=one", "vendor.com/class=two"})
	if err != nil {
		t.Fatal(err)
	}
	s := &specs.Spec{Process: &specs.Process{Env: []string{"A=image", "B=2"}}, Linux: &specs.Linux{Resources: &specs.LinuxResources{}}}
	if err := cdi.Apply(s, edits); err != nil {
		t.Fatal(err)
	}
	if want := []string{"B=2", "A=new", "KIND=1"}; !slices.Equal(s.Process.Env, want) {
		t.Errorf("environment %q, want %q", s.Process.Env, want)
	}
	if d := s.Linux.Devices; len(d) != 1 || d[0].Path != "/dev/two" || d[0].Type != "c" || d[0].Major != 1 || d[0].Minor != 3 {
		t.Errorf("devices %+v", d)
	}
	if r := s.Linux.Resources.Devices; len(r) != 1 || !r[0].Allow || r[0].Access != "r" || *r[0].Minor != 3 {
		t.Errorf("rules %+v", r)
	}
	if m := s.Mounts; len(m) != 1 || m[0].Type != "bind" || !slices.Equal(m[0].Options, []string{"ro", "rbind"}) {
		t.Errorf("mounts %+v", m)
	}
	if len(s.Hooks.CreateContainer) != 1 || !slices.Equal(s.Process.User.AdditionalGids, []uint32{7}) {
		t.Errorf("hooks %+v, groups %v", s.Hooks, s.Process.User.AdditionalGids)
	}
	_, err = cdi.Find(dirs, []string{"vendor.com/class=three"})
	if !errors.Is(err, cdi.ErrUnresolvable) || !strings.Contains(err.Error(), "vendor.com/class=three") || !strings.Contains(err.Error(), "broken.json") {
		t.Errorf("missing device: %v", err)
	}
}
