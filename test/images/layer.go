package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// A File is one entry of an image's root file system.
type File struct {
	Path string      // without the leading slash
	Mode os.FileMode // permissions; os.ModeDir or os.ModeSymlink for those
	Data []byte      // content of a file, target of a symbolic link
}

// made is the time on everything built here, so that the same content has the
// same digest.
var made = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A layer collects entries; the last one of a path wins, as in a stack of layers.
type layer struct {
	entries map[string]entry
}

type entry struct {
	header tar.Header
	data   []byte
}

func newLayer() *layer { return &layer{entries: map[string]entry{}} }

// add puts one file in, and the directories above it.
func (l *layer) add(f File) {
	h := tar.Header{Name: clean(f.Path), Mode: int64(f.Mode.Perm()), ModTime: made, Typeflag: tar.TypeReg, Size: int64(len(f.Data))}
	data := f.Data
	switch {
	case f.Mode.IsDir():
		h.Typeflag, h.Size, data = tar.TypeDir, 0, nil
		if f.Mode&os.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
	case f.Mode&os.ModeSymlink != 0:
		h.Typeflag, h.Size, h.Linkname, data = tar.TypeSymlink, 0, string(f.Data), nil
	}
	l.put(h, data)
}

func (l *layer) put(h tar.Header, data []byte) {
	for dir := path.Dir(h.Name); dir != "."; dir = path.Dir(dir) {
		if _, ok := l.entries[dir]; !ok {
			l.entries[dir] = entry{header: tar.Header{Name: dir, Mode: 0o755, ModTime: made, Typeflag: tar.TypeDir}}
		}
	}
	l.entries[h.Name] = entry{h, data}
}

// addTar puts a whole archive in, as far as keep wants it. Directories that
// Debian has merged into /usr go there.
func (l *layer) addTar(r io.Reader, keep func(name string) bool) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := merged(clean(h.Name))
		if name == "." || !keep(name) {
			continue
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		out := tar.Header{Name: name, Linkname: h.Linkname, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, Size: h.Size, Typeflag: h.Typeflag, ModTime: made}
		if h.Typeflag == tar.TypeLink {
			out.Linkname = merged(clean(h.Linkname))
		}
		l.put(out, data)
	}
}

// merged maps /bin, /sbin and /lib* to their places below /usr.
func merged(name string) string {
	first, rest, ok := strings.Cut(name, "/")
	switch first {
	case "bin", "sbin", "lib", "lib64":
		if ok {
			return "usr/" + first + "/" + rest
		}
		return "usr/" + first
	}
	return name
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// image makes an image of this one layer.
func (l *layer) image(c v1.Config) (v1.Image, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	names := make([]string, 0, len(l.entries))
	for name := range l.entries {
		names = append(names, name)
	}
	// Hard links come after what they link to.
	slices.SortFunc(names, func(a, b string) int {
		la, lb := l.entries[a].header.Typeflag == tar.TypeLink, l.entries[b].header.Typeflag == tar.TypeLink
		if la != lb {
			if la {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		e := l.entries[name]
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	packed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, packed)
	if err != nil {
		return nil, err
	}
	return configure(img, c)
}
