package fsat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is an open directory.
type Dir struct{ fd int }

// Stat is what Lstat tells.
type Stat struct {
	Mode     uint32 // type and permissions, as in st_mode
	UID, GID int
	Dev      uint64 // of a device
	Ino      uint64
	Blocks   int64 // of 512 bytes
	Mtime    time.Time
}

// IsDir reports a directory.
func (s Stat) IsDir() bool { return s.Mode&unix.S_IFMT == unix.S_IFDIR }

// IsLink reports a symbolic link.
func (s Stat) IsLink() bool { return s.Mode&unix.S_IFMT == unix.S_IFLNK }

// IsWhiteout reports the character device 0/0, by which overlayfs says that a name is gone.
func (s Stat) IsWhiteout() bool { return s.Mode&unix.S_IFMT == unix.S_IFCHR && s.Dev == 0 }

// Open opens the directory path.
func Open(path string) (*Dir, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Dir{fd}, nil
}

// Resolve opens the directory path as if d were the root of the file system.
func (d *Dir) Resolve(path string) (*Dir, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(d.fd, path, &how)
		switch {
		case err == nil:
			return &Dir{fd}, nil
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // raced with a rename elsewhere
			continue
		case errors.Is(err, unix.ENOSYS):
			return nil, errors.New("openat2 is missing: Linux 5.6 or newer is needed")
		}
		return nil, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
}

// Child opens the directory name in d, following no link.
func (d *Dir) Child(name string) (*Dir, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, wrap("open", name, err)
	}
	return &Dir{fd}, nil
}

// Close closes the directory.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Path is where the directory is now.
func (d *Dir) Path() (string, error) { return os.Readlink("/proc/self/fd/" + strconv.Itoa(d.fd)) }

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}

// Lstat describes name itself.
func (d *Dir) Lstat(name string) (Stat, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Stat{}, wrap("lstat", name, err)
	}
	return Stat{
		Mode: st.Mode, UID: int(st.Uid), GID: int(st.Gid), Dev: st.Rdev, Ino: st.Ino,
		Blocks: st.Blocks, Mtime: time.Unix(st.Mtim.Unix()),
	}, nil
}

// Readlink reads the symbolic link name.
func (d *Dir) Readlink(name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", wrap("readlink", name, err)
	}
	return string(buf[:n]), nil
}

// Mkdir makes a directory with mode 0755, whatever the umask says when Chmod follows.
func (d *Dir) Mkdir(name string) error { return wrap("mkdir", name, unix.Mkdirat(d.fd, name, 0o755)) }

// Symlink makes name point to target.
func (d *Dir) Symlink(target, name string) error {
	return wrap("symlink", name, unix.Symlinkat(target, d.fd, name))
}

// Link makes name another name of old in from. A symbolic link is linked, not followed.
func (d *Dir) Link(from *Dir, old, name string) error {
	return wrap("link", name, unix.Linkat(from.fd, old, d.fd, name, 0))
}

// Mknod makes a device or FIFO; typ is S_IFCHR, S_IFBLK or S_IFIFO.
func (d *Dir) Mknod(name string, typ, perm uint32, major, minor uint32) error {
	return wrap("mknod", name, unix.Mknodat(d.fd, name, typ|perm, int(unix.Mkdev(major, minor))))
}

// Whiteout makes name the character device 0/0.
func (d *Dir) Whiteout(name string) error { return d.Mknod(name, unix.S_IFCHR, 0, 0, 0) }

// Chown sets the owner of name itself.
func (d *Dir) Chown(name string, uid, gid int) error {
	return wrap("chown", name, unix.Fchownat(d.fd, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW))
}

// Chmod sets the permissions, with the set-id and sticky bits, of name, which must not be a symbolic link.
func (d *Dir) Chmod(name string, perm uint32) error {
	return wrap("chmod", name, unix.Fchmodat(d.fd, name, perm, 0))
}

// Chtimes sets the times of name itself.
func (d *Dir) Chtimes(name string, atime, mtime time.Time) error {
	ts := []unix.Timespec{timespec(atime), timespec(mtime)}
	return wrap("utimensat", name, unix.UtimesNanoAt(d.fd, name, ts, unix.AT_SYMLINK_NOFOLLOW))
}

// Setxattr sets an extended attribute of name itself.
func (d *Dir) Setxattr(name, attr, value string) error {
	path := "/proc/self/fd/" + strconv.Itoa(d.fd) + "/" + name
	return wrap("setxattr "+attr, name, unix.Lsetxattr(path, attr, []byte(value), 0))
}

// Create makes the regular file name, which must not exist.
func (d *Dir) Create(name string) (*File, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, wrap("create", name, err)
	}
	return &File{fd: fd, name: name}, nil
}

// Names lists the directory.
func (d *Dir) Names() ([]string, error) {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, wrap("open", ".", err)
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

// RemoveAll removes name and what is below it, following no link. A missing name is no error.
func (d *Dir) RemoveAll(name string) error {
	err := unix.Unlinkat(d.fd, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return wrap("unlink", name, err)
	}
	sub, err := d.Child(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := sub.Names()
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := sub.RemoveAll(n); err != nil {
			return err
		}
	}
	return wrap("rmdir", name, unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR))
}

func timespec(t time.Time) unix.Timespec {
	ts, err := unix.TimeToTimespec(t)
	if err != nil { // out of the range of the machine
		return unix.Timespec{}
	}
	return ts
}

// NotExist reports that a name, or a directory on the way to it, is missing.
func NotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// NotDir reports that something on the way is not a directory.
func NotDir(err error) bool { return errors.Is(err, unix.ENOTDIR) }

// NoXattr reports that the file system has no such extended attributes or does not let us set one.
func NoXattr(err error) bool { return errors.Is(err, unix.ENOTSUP) }

// Device types for Mknod.
const (
	CharDevice  = unix.S_IFCHR
	BlockDevice = unix.S_IFBLK
	FIFO        = unix.S_IFIFO
)

// Statfs tells the type name of the file system at path, in hexadecimal, and its free bytes.
func Statfs(path string) (typ string, free uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", 0, wrap("statfs", path, err)
	}
	return fmt.Sprintf("%#x", st.Type), st.Bavail * uint64(st.Bsize), nil
}
