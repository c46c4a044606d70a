package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOutside is returned when a path, or a symbolic link on the way, leads out of the directory.
var ErrOutside = errors.New("path leads out of the directory")

// A Dir is an open directory whose content may be changed by others at any
// moment. Paths are resolved by the kernel below it (openat2, RESOLVE_BENEATH):
// links that stay inside are followed, links and ".." that lead out are an
// error, and nobody can swap a component between check and use.
type Dir struct{ f *os.File }

// OpenDir opens the directory itself; links in its own path are followed.
func OpenDir(path string) (*Dir, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{os.NewFile(uintptr(fd), path)}, nil
}

// Close closes the directory; files opened below it stay open.
func (d *Dir) Close() error { return d.f.Close() }

// Path opens what is at the relative path, only to refer to it (O_PATH).
func (d *Dir) Path(path string) (*os.File, error) {
	return d.open(path, unix.O_PATH|unix.O_CLOEXEC)
}

func (d *Dir) open(path string, flags int) (*os.File, error) {
	if path == "" {
		path = "."
	}
	fd, err := openBeneath(int(d.f.Fd()), path, flags)
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
		err = ErrOutside
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(d.f.Name(), path), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.f.Name(), path)), nil
}

func openBeneath(dir int, path string, flags int) (int, error) {
	how := unix.OpenHow{
		Flags:   uint64(flags), //nolint:gosec // a set of bits
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(dir, path, &how)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue // a rename elsewhere in the tree made the kernel give up: try again
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return walkBeneath(dir, path, flags) // before Linux 5.6, or forbidden by seccomp
		}
		return fd, err
	}
}

// walkBeneath opens one component after the other and refuses every symbolic link.
func walkBeneath(dir int, path string, flags int) (int, error) {
	at, err := unix.Openat(dir, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	names := strings.Split(filepath.Clean(path), "/")
	for i, name := range names {
		if name == ".." || name == "" {
			unix.Close(at) //nolint:errcheck // O_PATH
			return -1, ErrOutside
		}
		f := unix.O_PATH | unix.O_CLOEXEC
		if i == len(names)-1 {
			f = flags
		}
		next, err := unix.Openat(at, name, f|unix.O_NOFOLLOW, 0)
		unix.Close(at) //nolint:errcheck // O_PATH
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(next, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			unix.Close(next) //nolint:errcheck // only referred to
			if err == nil {
				err = ErrOutside
			}
			return -1, err
		}
		at = next
	}
	return at, nil
}

// MkdirAll creates the directories of path that do not exist, with exactly the
// permissions of perm, and opens what is there at the end (O_PATH): a directory,
// or a file if the path existed as one.
func (d *Dir) MkdirAll(path string, perm fs.FileMode) (*os.File, error) {
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) {
		return nil, &os.PathError{Op: "mkdir", Path: filepath.Join(d.f.Name(), path), Err: ErrOutside}
	}
	// The usual case: it is all there.
	if f, err := d.Path(path); !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	at, done := ".", ""
	for _, name := range strings.Split(path, "/") {
		parent, err := d.open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
		if err != nil {
			return nil, err
		}
		done = filepath.Join(done, name)
		err = unix.Mkdirat(int(parent.Fd()), name, uint32(perm.Perm()))
		if err == nil {
			// The umask took bits away; the entry was made by us, and NOFOLLOW guards against a swap.
			err = chmodat(parent, name, perm)
		}
		parent.Close() //nolint:errcheck // O_PATH
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("mkdir %s: %w", filepath.Join(d.f.Name(), done), err)
		}
		at = done
	}
	return d.Path(path)
}

func chmodat(parent *os.File, name string, perm fs.FileMode) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // read only
	mode := uint32(perm.Perm())
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		mode |= st.Mode & unix.S_ISGID // inherited from a directory that belongs to the pod's fsGroup
	}
	return unix.Fchmod(fd, mode)
}

// SameFile reports whether f and the path (not following a link) are one file,
// also across a bind mount.
func SameFile(f *os.File, path string) bool {
	var a, b unix.Stat_t
	return unix.Fstat(int(f.Fd()), &a) == nil && unix.Lstat(path, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// IsDir reports whether f, which may be an O_PATH file, is a directory.
func IsDir(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
