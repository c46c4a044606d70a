package snapshot

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/fsat"
)

// Whiteouts says what becomes of a layer's whiteouts.
type Whiteouts int

const (
	// Convert turns them into overlayfs's form: a character device 0/0 for a name
	// that is gone, trusted.overlay.opaque for a directory that hides those below it.
	Convert Whiteouts = iota
	// Apply removes what they name: the directory shows the layers below.
	Apply
)

// Unpacked is what Unpack did.
type Unpacked struct {
	Usage
	// Implicit are the directories that files needed and the archive did not
	// describe, relative to the root, parents first. They belong to a lower layer,
	// whose owner and permissions the caller gives them.
	Implicit []string
	// NeedsParent is set, under Convert, when the layer is a difference that makes
	// sense only on top of its parent: a hard link to a file that it does not hold.
	// What has been unpacked is of no use then.
	NeedsParent bool
}

// ErrUnsafe is returned for an archive entry that would leave its root.
var ErrUnsafe = errors.New("unsafe path")

const (
	whiteoutPrefix = ".wh."
	whiteoutMeta   = ".wh..wh."
	opaqueMarker   = ".wh..wh..opq"
	opaqueAttr     = "trusted.overlay.opaque"
)

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// Unpack unpacks one layer (OCI image-spec, "Image Layer Filesystem Changeset"),
// an uncompressed tar stream, into dir and reads the stream to its end. Owners,
// permissions, times, hard links, devices, extended attributes and file
// capabilities are kept. Nothing is written outside dir, whatever the archive says.
func Unpack(ctx context.Context, dir string, r io.Reader, w Whiteouts) (Unpacked, error) {
	root, err := fsat.Open(dir)
	if err != nil {
		return Unpacked{}, err
	}
	defer root.Close()
	base, err := root.Path()
	if err != nil {
		return Unpacked{}, err
	}
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	x := &unpacker{root: root, base: base, whiteouts: w, buf: *buf, implicit: map[string]bool{".": true}}
	defer x.forget()
	if w == Apply {
		x.seen = map[string]bool{}
	}
	tr := tar.NewReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return Unpacked{}, err
		}
		hdr, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Unpacked{}, fmt.Errorf("read layer: %w", err)
		}
		if x.needsParent {
			continue // only the stream's end is of interest now
		}
		if err := x.entry(hdr, tr); err != nil {
			return Unpacked{}, fmt.Errorf("layer entry %q: %w", hdr.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // padding: part of the digest
		return Unpacked{}, fmt.Errorf("read layer: %w", err)
	}
	if err := x.finishTimes(); err != nil {
		return Unpacked{}, err
	}
	out := Unpacked{Usage: x.usage, NeedsParent: x.needsParent}
	for p := range x.implicit {
		out.Implicit = append(out.Implicit, p)
	}
	slices.Sort(out.Implicit) // "a" before "a/b"
	return out, nil
}

// unpacker is the state of one Unpack.
type unpacker struct {
	root      *fsat.Dir
	base      string // the root's path, to tell where a directory really is
	whiteouts Whiteouts
	buf       []byte

	cur     *fsat.Dir // the directory of the last entry: entries of one directory follow each other
	curPath string

	implicit    map[string]bool // real paths
	seen        map[string]bool // Apply: what this layer brought
	times       []dirTime
	usage       Usage
	needsParent bool
}

type dirTime struct {
	path         string
	atime, mtime time.Time
}

// clean makes an archive's name relative to the root, "." for the root itself.
func clean(name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return "", fmt.Errorf("%w: NUL in name", ErrUnsafe)
	}
	p := path.Clean(strings.TrimLeft(name, "/"))
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", fmt.Errorf("%w: leaves the root of the layer", ErrUnsafe)
	}
	return p, nil
}

// entry unpacks one entry.
func (x *unpacker) entry(hdr *tar.Header, content io.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := clean(hdr.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if hdr.Typeflag != tar.TypeDir {
			return fmt.Errorf("%w: the root must be a directory", ErrUnsafe)
		}
		delete(x.implicit, ".")
		x.times = append(x.times, dirTime{".", hdr.AccessTime, hdr.ModTime})
		return x.attributes(x.root, ".", hdr)
	}
	dirPath, base := path.Split(name)
	dir, err := x.dir(path.Clean(dirPath))
	if err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteoutPrefix) {
		return x.whiteout(dir, name, base)
	}
	if x.seen != nil {
		x.see(name)
	}
	if err := x.create(dir, name, base, hdr, content); err != nil {
		return err
	}
	x.usage.Inodes++
	return nil
}

// see notes that a name, and so all directories above it, come from this layer.
func (x *unpacker) see(name string) {
	for name != "." && !x.seen[name] {
		x.seen[name] = true
		name = path.Dir(name)
	}
}

// create makes what hdr describes under base in dir.
func (x *unpacker) create(dir *fsat.Dir, name, base string, hdr *tar.Header, content io.Reader) error {
	switch hdr.Typeflag {
	case tar.TypeDir:
		if _, err := x.mkdir(dir, base); err != nil {
			return err
		}
		if len(x.implicit) > 0 {
			if real, err := x.real(dir); err == nil {
				delete(x.implicit, path.Join(real, base))
			}
		}
		x.times = append(x.times, dirTime{name, hdr.AccessTime, hdr.ModTime})
		return x.attributes(dir, base, hdr)
	case tar.TypeReg:
		return x.regular(dir, base, hdr, content)
	case tar.TypeLink:
		x.usage.Inodes--
		return x.link(dir, name, base, hdr.Linkname)
	case tar.TypeSymlink:
		if err := x.replacing(dir, base, func() error { return dir.Symlink(hdr.Linkname, base) }); err != nil {
			return err
		}
		return x.leaf(dir, base, hdr)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		typ := map[byte]uint32{tar.TypeChar: fsat.CharDevice, tar.TypeBlock: fsat.BlockDevice, tar.TypeFifo: fsat.FIFO}[hdr.Typeflag]
		perm := uint32(hdr.Mode) & 0o7777
		mk := func() error { return dir.Mknod(base, typ, perm, uint32(hdr.Devmajor), uint32(hdr.Devminor)) }
		if err := x.replacing(dir, base, mk); err != nil {
			return err
		}
		return x.leaf(dir, base, hdr)
	}
	return fmt.Errorf("unknown type %q", hdr.Typeflag)
}

// regular writes a file.
func (x *unpacker) regular(dir *fsat.Dir, base string, hdr *tar.Header, content io.Reader) error {
	if err := x.room(hdr.Size); err != nil {
		return err
	}
	var f *fsat.File
	err := x.replacing(dir, base, func() (err error) { f, err = dir.Create(base); return err })
	if err != nil {
		return err
	}
	for err == nil {
		var n int
		n, err = content.Read(x.buf)
		if n > 0 {
			if werr := f.WriteSparse(x.buf[:n]); werr != nil {
				err = werr
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = f.EndSparse()
	}
	if err == nil { // the order matters: chown clears set-id bits and capabilities
		err = f.Chown(hdr.Uid, hdr.Gid)
	}
	if err == nil {
		err = f.Chmod(uint32(hdr.Mode) & 0o7777)
	}
	if err == nil {
		err = xattrs(hdr, f.Setxattr)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	x.usage.Bytes += (hdr.Size - f.Holes() + 4095) &^ 4095
	return dir.Chtimes(base, accessTime(hdr), hdr.ModTime)
}

// room refuses a file that the disk cannot hold before it is written: a sparse
// archive of a few bytes may claim to be of any size.
func (x *unpacker) room(size int64) error {
	const ask = 64 << 20 // smaller ones are not worth a system call
	if size < ask {
		return nil
	}
	_, free, err := fsat.Statfs(x.base)
	if err != nil {
		return err
	}
	if uint64(size) > free {
		return fmt.Errorf("the file has %d bytes and the disk %d free: %w", size, free, syscall.ENOSPC)
	}
	return nil
}

// link makes a hard link.
func (x *unpacker) link(dir *fsat.Dir, name, base, linkname string) error {
	target, err := clean(linkname)
	if err != nil {
		return fmt.Errorf("link to %q: %w", linkname, err)
	}
	if target == name {
		return nil
	}
	targetDir, targetBase := path.Split(target)
	from, err := x.root.Resolve(path.Join("/", targetDir))
	if err == nil {
		defer from.Close()
		var st fsat.Stat
		if st, err = from.Lstat(targetBase); err == nil && st.IsWhiteout() && x.whiteouts == Convert {
			err = fmt.Errorf("%w: link to %q, which the layer removes", ErrUnsafe, linkname)
			return err
		}
	}
	if err == nil {
		err = x.replacing(dir, base, func() error { return dir.Link(from, targetBase, base) })
	}
	if fsat.NotExist(err) && x.whiteouts == Convert {
		x.needsParent = true // the file is in a layer below
		return nil
	}
	if err != nil {
		return fmt.Errorf("link to %q: %w", linkname, err)
	}
	return nil
}

// leaf sets the attributes and times of what is neither a file nor a directory.
func (x *unpacker) leaf(dir *fsat.Dir, base string, hdr *tar.Header) error {
	if err := x.attributes(dir, base, hdr); err != nil {
		return err
	}
	return dir.Chtimes(base, accessTime(hdr), hdr.ModTime)
}

// attributes sets owner, permissions and extended attributes.
func (x *unpacker) attributes(dir *fsat.Dir, base string, hdr *tar.Header) error {
	if err := dir.Chown(base, hdr.Uid, hdr.Gid); err != nil {
		return err
	}
	if hdr.Typeflag != tar.TypeSymlink {
		if err := dir.Chmod(base, uint32(hdr.Mode)&0o7777); err != nil {
			return err
		}
	}
	return xattrs(hdr, func(attr, value string) error { return dir.Setxattr(base, attr, value) })
}

const paxXattr = "SCHILY.xattr."

// xattrs sets the extended attributes of an entry. Those of overlayfs are left
// out: an image could redirect a directory to any place of a lower layer with them.
func xattrs(hdr *tar.Header, set func(attr, value string) error) error {
	for key, value := range hdr.PAXRecords {
		attr, ok := strings.CutPrefix(key, paxXattr)
		if !ok || OverlayAttr(attr) {
			continue
		}
		if err := set(attr, value); err != nil && !fsat.NoXattr(err) {
			return err
		}
	}
	return nil
}

// OverlayAttr reports an extended attribute that steers overlayfs.
func OverlayAttr(attr string) bool {
	return strings.HasPrefix(attr, "trusted.overlay.") || strings.HasPrefix(attr, "user.overlay.")
}

func accessTime(hdr *tar.Header) time.Time {
	if hdr.AccessTime.IsZero() {
		return hdr.ModTime
	}
	return hdr.AccessTime
}
