package snapshot_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/periplus/periplus/containers/snapshot"
	"github.com/periplus/periplus/linux/fsat"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: owners, devices and trusted extended attributes")
	}
}

// Entries of archives.
func file(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Linkname: content}
}
func dir(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755} }
func symlink(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}
}
func hardlink(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

// archive makes a tar; a file's content is in Linkname.
func archive(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Linkname = h.Linkname, ""
			h.Size = int64(len(content))
		}
		if h.ModTime.IsZero() {
			h.ModTime = time.Unix(1_000_000_000, 0)
		}
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// tree describes all below dir, one line each.
func tree(t testing.TB, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch st := fi.Sys().(*syscall.Stat_t); {
		case fi.IsDir():
			if name += "/"; fsat.Getxattr(path, "trusted.overlay.opaque") == "y" {
				name += " opaque"
			}
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			name += " -> " + to
		case fi.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0:
			name += " gone"
		case fi.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name += "=" + string(data)
		default:
			name += " " + fi.Mode().Type().String()
		}
		out = append(out, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, tc := range []struct {
		name     string
		entries  []tar.Header
		want     []string
		implicit []string
		parent   bool
	}{
		{name: "plain", entries: []tar.Header{dir("./"), dir("./a"), file("./a/f", "x"), symlink("a/s", "/abs"), hardlink("a/h", "./a/f")},
			want: []string{"a/", "a/f=x", "a/h=x", "a/s -> /abs"}},
		{name: "absolute names stay inside", entries: []tar.Header{file("/etc/passwd", "x")},
			want: []string{"etc/", "etc/passwd=x"}, implicit: []string{".", "etc"}},
		{name: "described later", entries: []tar.Header{file("a/b/f", "x"), dir("a")},
			want: []string{"a/", "a/b/", "a/b/f=x"}, implicit: []string{".", "a/b"}},
		{name: "replaced by another kind", entries: []tar.Header{dir("./"), dir("a"), file("a/f", "1"), file("a", "2"), dir("b"), symlink("b", "a"), file("c", "1"), dir("c")},
			want: []string{"a=2", "b -> a", "c/"}},
		{name: "later wins", entries: []tar.Header{dir("./"), file("f", "1"), file("f", "2")}, want: []string{"f=2"}},
		{name: "whiteout", entries: []tar.Header{dir("./"), dir("a"), file("a/.wh.f", "")}, want: []string{"a/", "a/f gone"}},
		{name: "opaque", entries: []tar.Header{dir("./"), dir("a"), file("a/f", "x"), file("a/.wh..wh..opq", "")}, want: []string{"a/ opaque", "a/f=x"}},
		{name: "whiteout before the new file", entries: []tar.Header{dir("./"), file(".wh.f", ""), file("f", "x")}, want: []string{"f=x"}},
		{name: "whiteout after the new file", entries: []tar.Header{dir("./"), file("f", "x"), file(".wh.f", "")}, want: []string{"f=x"}},
		{name: "whiteout before the new directory", entries: []tar.Header{dir("./"), file(".wh.d", ""), dir("d"), file("d/f", "x")}, want: []string{"d/ opaque", "d/f=x"}},
		{name: "whiteout before an implicit directory", entries: []tar.Header{dir("./"), file(".wh.d", ""), file("d/f", "x")},
			want: []string{"d/ opaque", "d/f=x"}, implicit: []string{"d"}},
		{name: "whiteout after the new directory", entries: []tar.Header{dir("./"), dir("d"), file("d/f", "x"), file(".wh.d", "")}, want: []string{"d/ opaque", "d/f=x"}},
		{name: "aufs leavings", entries: []tar.Header{dir("./"), dir(".wh..wh.plnk"), file("f", "x")}, want: []string{"f=x"}},
		{name: "through a link", entries: []tar.Header{dir("./"), dir("usr"), dir("usr/lib"), symlink("lib", "usr/lib"), file("lib/f", "x")},
			want: []string{"lib -> usr/lib", "usr/", "usr/lib/", "usr/lib/f=x"}},
		{name: "through an absolute link", entries: []tar.Header{dir("./"), dir("a"), symlink("l", "/a"), file("l/f", "x")}, want: []string{"a/", "a/f=x", "l -> /a"}},
		{name: "a link up leads to the root", entries: []tar.Header{dir("./"), symlink("up", "../../.."), file("up/f", "x")}, want: []string{"f=x", "up -> ../../.."}},
		{name: "through a dangling link", entries: []tar.Header{dir("./"), dir("var"), symlink("var/run", "/run"), file("var/run/f", "x")},
			want: []string{"run/", "run/f=x", "var/", "var/run -> /run"}, implicit: []string{"run"}},
		{name: "hard link to a lower layer", entries: []tar.Header{dir("./"), hardlink("a", "not/here"), file("b", "x")}, want: []string{}, parent: true},
		{name: "hard link to a link", entries: []tar.Header{dir("./"), symlink("s", "nowhere"), hardlink("h", "s")}, want: []string{"h -> nowhere", "s -> nowhere"}},
		{name: "fifo", entries: []tar.Header{dir("./"), {Typeflag: tar.TypeFifo, Name: "p", Mode: 0o600}}, want: []string{"p p---------"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			got, err := snapshot.Unpack(t.Context(), root, bytes.NewReader(archive(t, tc.entries...)), snapshot.Convert)
			if err != nil {
				t.Fatal(err)
			}
			if got.NeedsParent != tc.parent {
				t.Errorf("NeedsParent is %v", got.NeedsParent)
			}
			if !tc.parent && !slices.Equal(tree(t, root), tc.want) {
				t.Errorf("got  %q\nwant %q", tree(t, root), tc.want)
			}
			if !slices.Equal(got.Implicit, tc.implicit) {
				t.Errorf("implicit %q, want %q", got.Implicit, tc.implicit)
			}
		})
	}
}

func TestUnpackUnsafe(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for name, entries := range map[string][]tar.Header{
		"up":               {file("../f", "x")},
		"up in the middle": {file("a/../../f", "x")},
		"hard link up":     {dir("./"), hardlink("h", "../../etc/passwd")},
		"root is a file":   {file(".", "x")},
		"root is a link":   {symlink(".", "/")},
		"whiteout of dots": {dir("./"), file(".wh...", "")},
		"link loop":        {dir("./"), symlink("a", "b"), symlink("b", "a"), file("a/f", "x")},
		"below a file":     {dir("./"), file("a", "x"), file("a/b", "x")},
		"growing link":     {dir("./"), symlink("a", "a/a"), file("a/f", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			root := filepath.Join(outer, "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := snapshot.Unpack(t.Context(), root, bytes.NewReader(archive(t, entries...)), snapshot.Convert)
			if err == nil {
				t.Error("no error")
			}
			if left := tree(t, outer); !slices.ContainsFunc(left, func(s string) bool { return s == "root/" }) || slices.ContainsFunc(left, func(s string) bool { return !strings.HasPrefix(s, "root/") }) {
				t.Errorf("outside: %q", left)
			}
		})
	}
}

// TestUnpackAttributes checks owner, set-id bits, capabilities, times and attributes that must not come through.
func TestUnpackAttributes(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := t.TempDir()
	mtime := time.Unix(1_234_567_890, 123_456_789)
	capability := "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // cap_net_bind_service+ep
	tool := file("d/tool", "x")
	tool.Uid, tool.Gid, tool.Mode, tool.ModTime = 7, 8, 0o4755, mtime
	tool.Format = tar.FormatPAX
	tool.PAXRecords = map[string]string{
		"SCHILY.xattr.security.capability": capability,
		"SCHILY.xattr.user.note":           "hello",
	}
	d := dir("d")
	d.Uid, d.Mode, d.ModTime, d.Format = 9, 0o1770, mtime, tar.FormatPAX
	d.PAXRecords = map[string]string{"SCHILY.xattr.trusted.overlay.redirect": "/etc"}
	_, err := snapshot.Unpack(t.Context(), root, bytes.NewReader(archive(t, d, tool)), snapshot.Convert)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"d": "9/0 dtrwxrwx---", "d/tool": "7/8 urwxr-xr-x"} {
		fi, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		st := fi.Sys().(*syscall.Stat_t)
		if got := fmt.Sprintf("%d/%d %s", st.Uid, st.Gid, fi.Mode()); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if !fi.ModTime().Equal(mtime) {
			t.Errorf("%s: time %v", name, fi.ModTime())
		}
	}
	path := filepath.Join(root, "d/tool")
	if got := fsat.Getxattr(path, "security.capability"); got != capability {
		t.Errorf("capability %q", got)
	}
	if got := fsat.Getxattr(path, "user.note"); got != "hello" {
		t.Errorf("user.note %q", got)
	}
	if got := fsat.Getxattr(filepath.Join(root, "d"), "trusted.overlay.redirect"); got != "" {
		t.Errorf("trusted.overlay.redirect %q came through", got)
	}
}

// TestUnpackApply checks the form that works on top of the layers below.
func TestUnpackApply(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := t.TempDir()
	lower := archive(t, dir("a"), file("a/old", "1"), dir("a/sub"), file("a/sub/old", "1"), file("gone", "1"), file("kept", "1"), dir("usr"), symlink("bin", "usr"))
	upper := archive(t, file(".wh.gone", ""), dir("a"), file("a/new", "2"), file("a/sub/new", "2"), file("a/.wh..wh..opq", ""), hardlink("link", "kept"), file("bin/tool", "2"))
	for _, layer := range [][]byte{lower, upper} {
		if _, err := snapshot.Unpack(t.Context(), root, bytes.NewReader(layer), snapshot.Apply); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"a/", "a/new=2", "a/sub/", "a/sub/new=2", "bin -> usr", "kept=1", "link=1", "usr/", "usr/tool=2"}
	if got := tree(t, root); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestUnpackSparse checks that zeros take no room, at the end of a file neither.
func TestUnpackSparse(t *testing.T) {
	t.Parallel()
	needRoot(t)
	root := t.TempDir()
	content := strings.Repeat("\x00", 4<<20) + "middle" + strings.Repeat("\x00", 4<<20)
	out, err := snapshot.Unpack(t.Context(), root, bytes.NewReader(archive(t, file("f", content))), snapshot.Convert)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "f")
	if data, err := os.ReadFile(path); err != nil || string(data) != content {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if on := fi.Sys().(*syscall.Stat_t).Blocks * 512; on > 1<<20 || out.Bytes > 1<<20 {
		t.Errorf("%d bytes are on the disk, %d are counted", on, out.Bytes)
	}
}

func TestUnpackTruncated(t *testing.T) {
	t.Parallel()
	needRoot(t)
	data := archive(t, file("f", strings.Repeat("x", 5000)))
	if _, err := snapshot.Unpack(t.Context(), t.TempDir(), bytes.NewReader(data[:3000]), snapshot.Convert); err == nil {
		t.Error("no error")
	}
}

// FuzzUnpack looks for archives that write outside of their root or that cannot be removed again.
func FuzzUnpack(f *testing.F) {
	needRoot(f)
	f.Add(archive(f, dir("./"), file("a/f", "x"), symlink("s", "../.."), file("s/f", "y"), hardlink("h", "a/f")), false)
	f.Add(archive(f, file(".wh.a", ""), file("a/b", "x"), file("a/.wh..wh..opq", ""), file("../x", "x")), true)
	f.Fuzz(func(t *testing.T, data []byte, apply bool) {
		for tr := tar.NewReader(bytes.NewReader(data)); ; {
			hdr, err := tr.Next()
			if err != nil {
				break
			}
			if hdr.Size > 1<<20 {
				t.Skip("sparse: writing it takes too long")
			}
		}
		outer := t.TempDir()
		root := filepath.Join(outer, "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		w := snapshot.Convert
		if apply {
			w = snapshot.Apply
		}
		_, err := snapshot.Unpack(t.Context(), root, bytes.NewReader(data), w)
		if err != nil && errors.Is(err, syscall.EBADF) {
			t.Errorf("a descriptor was used after it was closed: %v", err)
		}
		entries, err := os.ReadDir(outer)
		if err != nil || len(entries) != 1 || entries[0].Name() != "root" {
			t.Errorf("outside of the root: %v %v", entries, err)
		}
		d, err := fsat.Open(outer)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.RemoveAll("root"); err != nil {
			t.Errorf("cannot be removed: %v", err)
		}
	})
}

// BenchmarkUnpack unpacks a layer of 2,000 small files in 100 directories.
func BenchmarkUnpack(b *testing.B) {
	needRoot(b)
	var entries []tar.Header
	content := strings.Repeat("0123456789abcdef", 256)
	for i := range 100 {
		entries = append(entries, dir(fmt.Sprintf("usr/share/d%d", i)))
		for j := range 20 {
			entries = append(entries, file(fmt.Sprintf("usr/share/d%d/f%d", i, j), content))
		}
	}
	data := archive(b, entries...)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		root, err := os.MkdirTemp(b.TempDir(), "") //nolint:usetesting // one a round, gone before the next
		if err != nil {
			b.Fatal(err)
		}
		if _, err := snapshot.Unpack(b.Context(), root, bytes.NewReader(data), snapshot.Convert); err != nil {
			b.Fatal(err)
		}
	}
}
