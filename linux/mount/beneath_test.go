package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// tree has files, and links that stay inside and that lead out.
func tree(t *testing.T) *Dir {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"in": "a/b", "up": "..", "root": "/", "a/out": "../../x"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() }) //nolint:errcheck // O_PATH
	return d
}

func TestPathStaysBeneath(t *testing.T) {
	t.Parallel()
	d := tree(t)
	for path, want := range map[string]error{
		"": nil, ".": nil, "a": nil, "a/b": nil, "a/file": nil, "in": nil, "a/../a": nil,
		"none": fs.ErrNotExist, "a/file/x": unix.ENOTDIR,
		"..": ErrOutside, "a/../../x": ErrOutside, "up": ErrOutside, "root/etc": ErrOutside, "a/out": ErrOutside, "/etc": ErrOutside,
	} {
		f, err := d.Path(path)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
		if err == nil {
			f.Close() //nolint:errcheck // O_PATH
		}
	}
}

// Without openat2 nothing leads out either; links are refused altogether.
func TestWalkBeneath(t *testing.T) {
	t.Parallel()
	d := tree(t)
	for path, ok := range map[string]bool{
		".": true, "a": true, "a/b": true, "a/file": true,
		"in": false, "in/x": false, "up": false, "root": false, "root/etc": false, "..": false, "/etc": false, "none": false,
	} {
		fd, err := walkBeneath(int(d.f.Fd()), path, unix.O_PATH|unix.O_CLOEXEC)
		if (err == nil) != ok {
			t.Errorf("%q: %v, want success: %v", path, err, ok)
		}
		if err == nil {
			unix.Close(fd) //nolint:errcheck // O_PATH
		}
	}
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	d := tree(t)
	for path, ok := range map[string]bool{
		"new/deep": true, "in/new": true, "a/file": true, "a": true,
		"a/file/x": false, "up/x": false, "root/x": false, "../x": false, "a/out/x": false,
	} {
		f, err := d.MkdirAll(path, 0o777)
		if (err == nil) != ok {
			t.Errorf("%q: %v, want success: %v", path, err, ok)
		}
		if err == nil {
			f.Close() //nolint:errcheck // O_PATH
		}
	}
	info, err := os.Stat(filepath.Join(d.f.Name(), "a/b/new"))
	if err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("a/b/new: %v %v, want all bits whatever the umask", info, err)
	}
}

func TestUnderIn(t *testing.T) {
	t.Parallel()
	const info = `22 1 0:1 / / rw - ext4 /dev/x rw
23 22 0:2 / /pods/a rw,nosuid shared:1 - tmpfs tmpfs rw
24 23 0:3 / /pods/a/b\040c rw - tmpfs tmpfs rw
25 22 0:4 / /pods/ab rw - tmpfs tmpfs rw
short line
`
	got := underIn(info, "/pods/a")
	if len(got) != 2 || got[0] != "/pods/a/b c" || got[1] != "/pods/a" {
		t.Errorf("got %q", got)
	}
	if got := underIn(info, "/"); len(got) != 4 {
		t.Errorf("below the root: %q", got)
	}
}

func TestIsPoint(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{"/proc": true, t.TempDir(): false, "/nonexistent": false, "/proc/self": false} {
		if got, err := IsPoint(path); err != nil || got != want {
			t.Errorf("%s: %v %v", path, got, err)
		}
	}
}
