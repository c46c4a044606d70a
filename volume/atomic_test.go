package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/volumetest"
)

func payload(files map[string]string) volume.Payload {
	p := volume.Payload{}
	for path, data := range files {
		p[path] = volume.File{Data: []byte(data), Mode: 0o640}
	}
	return p
}

func TestProject(t *testing.T) {
	t.Parallel()
	a := map[string]string{"x": "1", "d/y": "2", "d/z": "3"}
	for name, steps := range map[string][]map[string]string{
		"same again":      {a, a},
		"changed value":   {a, {"x": "9", "d/y": "2", "d/z": "3"}},
		"name gone":       {a, {"d/y": "2"}},
		"directory gone":  {a, {"x": "1"}},
		"file to dir":     {{"x": "1"}, {"x/y": "2"}},
		"dir to file":     {{"x/y": "2"}, {"x": "1"}},
		"emptied":         {a, {}},
		"from empty":      {{}, a},
		"name like dots":  {{".hidden": "1", "..data.x/../no": ""}},
		"two generations": {a, {"x": "2"}, {"x": "3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, want := range steps {
				err := volume.Project(dir, payload(want), nil)
				if name == "name like dots" {
					if err == nil {
						t.Fatal("a path that leads out was accepted")
					}
					volumetest.Equal(t, dir, map[string]string{})
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				volumetest.Equal(t, dir, want)
			}
			generations, err := filepath.Glob(filepath.Join(dir, "..2*"))
			if err != nil || len(generations) != 1 {
				t.Errorf("directories left: %v %v", generations, err)
			}
		})
	}
}

func TestProjectWritesOnlyChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := func() string {
		s, err := os.Readlink(filepath.Join(dir, "..data"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(volume.Project(dir, payload(map[string]string{"x": "1"}), nil))
	before := link()
	must(volume.Project(dir, payload(map[string]string{"x": "1"}), func(string) error { return errors.New("must not be called") }))
	if link() != before {
		t.Error("same content was written again")
	}
	// What fails before the switch changes nothing.
	failed := errors.New("no")
	if err := volume.Project(dir, payload(map[string]string{"x": "2"}), func(string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	volumetest.Equal(t, dir, map[string]string{"x": "1"})
	info, err := os.Stat(filepath.Join(dir, "x"))
	must(err)
	if info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	// A link that a crash left out comes back.
	must(os.Remove(filepath.Join(dir, "x")))
	must(volume.Project(dir, payload(map[string]string{"x": "1"}), nil))
	volumetest.Equal(t, dir, map[string]string{"x": "1"})
}
