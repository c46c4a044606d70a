package overlayfs_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
)

func open(t testing.TB, root string) *overlayfs.Snapshotter {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts overlayfs")
	}
	s, err := overlayfs.Open(root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// chainID makes a chain ID of a word.
func chainID(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// archive makes a tar of "name=content", "name/" (directory), "name->target" and "name=>hard link".
func archive(t testing.TB, entries ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, e := range entries {
		hdr := &tar.Header{Mode: 0o644, Typeflag: tar.TypeReg}
		content := ""
		if name, target, ok := strings.Cut(e, "=>"); ok {
			hdr.Name, hdr.Linkname, hdr.Typeflag = name, target, tar.TypeLink
		} else if name, target, ok := strings.Cut(e, "->"); ok {
			hdr.Name, hdr.Linkname, hdr.Typeflag = name, target, tar.TypeSymlink
		} else if strings.HasSuffix(e, "/") {
			hdr.Name, hdr.Typeflag, hdr.Mode = e, tar.TypeDir, 0o750
			hdr.Uid = 42
		} else {
			hdr.Name, content, _ = strings.Cut(e, "=")
			hdr.Size = int64(len(content))
		}
		if err := tw.WriteHeader(hdr); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(tw, content)
	}
	tw.Close()
	return buf.Bytes()
}

// add stages and commits a layer.
func add(t testing.TB, s *overlayfs.Snapshotter, id, parent string, entries ...string) {
	t.Helper()
	data := archive(t, entries...)
	staged, err := s.Stage(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(t.Context(), staged, id, parent, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		t.Fatal(err)
	}
}

// mount prepares and mounts a container, and takes both away at the end of the test.
func mount(t testing.TB, s *overlayfs.Snapshotter, id, chain string, o snapshot.PrepareOptions) (root string) {
	t.Helper()
	if err := s.Prepare(t.Context(), id, chain, o); err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	if err := s.Mount(t.Context(), id, root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := errors.Join(s.Unmount(ctx, root), s.Remove(ctx, id)); err != nil {
			t.Error(err)
		}
	})
	return root
}

// look reads a file, or says that it is not there.
func look(root, name string) string {
	data, err := os.ReadFile(filepath.Join(root, name))
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func names(t *testing.T, dir string) int {
	t.Helper()
	e, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}

func TestContainer(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	a, b := chainID("a"), chainID("b")
	add(t, s, a, "", "etc/", "etc/a=1", "etc/gone=1", "d/", "d/old=1", "lib/", "bin->lib")
	add(t, s, b, a, "etc/.wh.gone=", "etc/b=2", "d/.wh..wh..opq=", "d/new=2")
	one := mount(t, s, "one", b, snapshot.PrepareOptions{})
	two := mount(t, s, "two", b, snapshot.PrepareOptions{})
	ro := mount(t, s, "ro", a, snapshot.PrepareOptions{ReadOnly: true})
	for name, want := range map[string]string{"etc/a": "1", "etc/b": "2", "etc/gone": "-", "d/old": "-", "d/new": "2"} {
		if got := look(one, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// directories that b uses without describing them are as a has them
	for _, name := range []string{"etc", "d"} {
		fi, err := os.Stat(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		if uid := fi.Sys().(*syscall.Stat_t).Uid; uid != 42 || fi.Mode().Perm() != 0o750 {
			t.Errorf("%s: %s of %d", name, fi.Mode(), uid)
		}
	}
	if err := os.WriteFile(filepath.Join(one, "etc/a"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := look(two, "etc/a"); got != "1" {
		t.Errorf("the other container sees %q", got)
	}
	u, err := s.Usage(t.Context(), "one")
	if err != nil || u.Bytes < 4096 || u.Inodes < 2 {
		t.Errorf("usage %+v %v", u, err)
	}
	if err := os.WriteFile(filepath.Join(ro, "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("read-only: %v", err)
	}
	if look(ro, "etc/gone") != "1" {
		t.Error("read-only: no content")
	}
	// the same again is no error, other layers are
	if err := s.Prepare(t.Context(), "one", b, snapshot.PrepareOptions{}); err != nil {
		t.Error(err)
	}
	if err := s.Prepare(t.Context(), "one", a, snapshot.PrepareOptions{}); !errors.Is(err, snapshot.ErrExists) {
		t.Error(err)
	}
	if err := s.Prepare(t.Context(), "three", chainID("none"), snapshot.PrepareOptions{}); !errors.Is(err, snapshot.ErrNotFound) {
		t.Error(err)
	}
	for _, id := range []string{"", "..", "a/b"} {
		if err := s.Prepare(t.Context(), id, b, snapshot.PrepareOptions{}); err == nil {
			t.Errorf("ID %q was accepted", id)
		}
	}
}

// TestNoLayers mounts a container of an image without layers.
func TestNoLayers(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	root := mount(t, s, "c", "", snapshot.PrepareOptions{})
	ro := mount(t, s, "r", "", snapshot.PrepareOptions{ReadOnly: true})
	if names(t, root)+names(t, ro) != 0 {
		t.Error("not empty")
	}
}

// TestNeedsParent commits layers that make sense on top of their parent only.
func TestNeedsParent(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	base := chainID("base")
	add(t, s, base, "", "usr/", "usr/lib/", "lib->usr/lib", "etc/", "etc/conf=1", "dir/", "dir/x=1")
	for i, tc := range []struct{ entries, look, want string }{
		{"lib/new=2", "usr/lib/new", "2"},           // through the parent's link
		{"hard=>etc/conf", "hard", "1"},             // to the parent's file
		{"hard=>etc/conf dir/.wh.x=", "dir/x", "-"}, // with a whiteout
		{"lib/f=2 dir/.wh..wh..opq=", "dir/x", "-"}, // with an opaque directory
		{".wh.lib= lib/f=2", "lib/f", "2"},          // the link is removed first
		{".wh.lib= lib/f=2", "usr/lib/f", "-"},      // and so nothing goes through it
		{"lib/ lib/f=2", "usr/lib/f", "-"},          // or replaced
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			id := chainID(fmt.Sprint("child", i))
			add(t, s, id, base, strings.Fields(tc.entries)...)
			root := mount(t, s, fmt.Sprint("c", i), id, snapshot.PrepareOptions{})
			if got := look(root, tc.look); got != tc.want {
				t.Errorf("%s is %q, want %q", tc.look, got, tc.want)
			}
			if look(root, "etc/conf") != "1" {
				t.Error("the parent's files are gone")
			}
		})
	}
	data := archive(t, "hard=>none")
	staged, err := s.Stage(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(t.Context(), staged, chainID("bad"), base, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err == nil || s.Acquire(chainID("bad")) {
		t.Errorf("a link to nothing: %v", err)
	}
}

// TestDeep mounts more layers than fit into the options of a mount call.
func TestDeep(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "a,b:c")) // characters that options must escape
	parent := ""
	const depth = 200
	for i := range depth {
		id := chainID(fmt.Sprint(i))
		add(t, s, id, parent, fmt.Sprintf("f%d=%d", i, i), fmt.Sprintf("last=%d", i))
		parent = id
		if i == 2 {
			if root := mount(t, s, "few", id, snapshot.PrepareOptions{}); look(root, "last") != "2" {
				t.Errorf("few: %q", look(root, "last"))
			}
		}
	}
	root := mount(t, s, "deep", parent, snapshot.PrepareOptions{})
	if look(root, "f0") != "0" || look(root, "last") != fmt.Sprint(depth-1) {
		t.Errorf("%q %q", look(root, "f0"), look(root, "last"))
	}
	if err := os.WriteFile(filepath.Join(root, "f0"), []byte("x"), 0o600); err != nil {
		t.Error(err)
	}
}

// TestLife follows layers through pins, children, containers and restarts.
func TestLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	a, b, c := chainID("a"), chainID("b"), chainID("c")
	add(t, s, a, "", "f=1")
	add(t, s, b, a, "f=2")
	add(t, s, c, a, "f=3")
	s.Release(a) // held by b and c
	if err := s.Prepare(t.Context(), "x", b, snapshot.PrepareOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Release(b) // held by x
	s.Release(c) // gone
	layers := filepath.Join(dir, "layers")
	if n := names(t, layers); n != 2 {
		t.Errorf("%d layers, want 2", n)
	}
	// an interrupted unpacking
	if err := os.MkdirAll(filepath.Join(dir, "tmp/123/fs/etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir)
	if err := s.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Prepared(); len(got) != 1 || got[0] != "x" {
		t.Errorf("prepared: %v", got)
	}
	root := t.TempDir()
	if err := s.Mount(t.Context(), "x", root); err != nil {
		t.Fatal(err)
	}
	if look(root, "f") != "2" {
		t.Errorf("f is %q", look(root, "f"))
	}
	if err := s.Unmount(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Remove(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if n := names(t, layers) + names(t, filepath.Join(dir, "tmp")) + names(t, filepath.Join(dir, "active")); n != 0 {
		t.Errorf("%d things are left", n)
	}
}

// TestPowerLoss drops layers of another boot that are not known to be on the disk.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	a, b := chainID("a"), chainID("b")
	add(t, s, a, "", "f=1")
	add(t, s, b, a, "g=1")
	if err := s.Prepare(t.Context(), "x", b, snapshot.PrepareOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Close() // waits for the disk
	layer := func(id string) string { return filepath.Join(dir, "layers", id[7:39]) }
	reboot := func(id string) {
		path := filepath.Join(layer(id), "layer.json")
		var r map[string]any
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		r["boot"] = "another"
		data, _ = json.Marshal(r)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reboot(a)
	reboot(b)
	s = open(t, dir)
	if !s.Acquire(b) {
		t.Fatal("a layer that is on the disk was dropped")
	}
	s.Close()
	if err := os.Remove(filepath.Join(layer(a), "synced")); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if s.Acquire(a) || s.Acquire(b) {
		t.Fatal("a layer that may be incomplete was kept")
	}
	if err := s.Mount(t.Context(), "x", t.TempDir()); !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("mount without layers: %v", err)
	}
	// unpacked again, the container works again
	add(t, s, a, "", "f=1")
	add(t, s, b, a, "g=1")
	root := mount(t, s, "x", b, snapshot.PrepareOptions{})
	if look(root, "f") != "1" {
		t.Error("no content")
	}
}

// TestOnOverlay refuses a state directory that cannot work.
func TestOnOverlay(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	root := mount(t, s, "c", "", snapshot.PrepareOptions{})
	_, err := overlayfs.Open(filepath.Join(root, "state"), nil)
	if !errors.Is(err, snapshot.ErrUnsupported) || !strings.Contains(err.Error(), "volume") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkStart is what a container start costs here: prepare, mount, unmount, remove.
func BenchmarkStart(b *testing.B) {
	s := open(b, b.TempDir())
	id := chainID("a")
	add(b, s, id, "", "f=1")
	root := b.TempDir()
	for b.Loop() {
		err := s.Prepare(b.Context(), "c", id, snapshot.PrepareOptions{})
		if err == nil {
			err = s.Mount(b.Context(), "c", root)
		}
		if err == nil {
			err = s.Unmount(b.Context(), root)
		}
		if err == nil {
			err = s.Remove(b.Context(), "c")
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
