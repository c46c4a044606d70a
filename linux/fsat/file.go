package fsat

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// File is a regular file being written. It is not known to the runtime's
// poller, which makes small files cheaper than os.File.
type File struct {
	fd    int
	name  string
	holes int64 // bytes that WriteSparse left out
	open  bool  // the last of them reaches to the end
}

var _ io.Writer = (*File)(nil)

// Write writes all of p.
func (f *File) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(f.fd, p[done:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, wrap("write", f.name, err)
		}
		done += n
	}
	return done, nil
}

// zeros is as long as what is worth leaving out.
var zeros [256 << 10]byte

// WriteSparse writes p, or leaves a hole for it if it is nothing but zeros. EndSparse
// must follow the last one.
func (f *File) WriteSparse(p []byte) error {
	const least = 4096 // a block of most file systems
	if n := len(p); n >= least && n <= len(zeros) && bytes.Equal(p, zeros[:n]) {
		if _, err := unix.Seek(f.fd, int64(n), io.SeekCurrent); err != nil {
			return wrap("seek", f.name, err)
		}
		f.holes, f.open = f.holes+int64(n), true
		return nil
	}
	f.open = false
	_, err := f.Write(p)
	return err
}

// EndSparse gives a file that ends with a hole its length.
func (f *File) EndSparse() error {
	if !f.open {
		return nil
	}
	end, err := unix.Seek(f.fd, 0, io.SeekCurrent)
	if err == nil {
		err = unix.Ftruncate(f.fd, end)
	}
	return wrap("truncate", f.name, err)
}

// Holes is how many bytes of the file are on no disk.
func (f *File) Holes() int64 { return f.holes }

// Chown sets the owner, which clears set-id bits and capabilities: call it first.
func (f *File) Chown(uid, gid int) error { return wrap("chown", f.name, unix.Fchown(f.fd, uid, gid)) }

// Chmod sets the permissions.
func (f *File) Chmod(perm uint32) error { return wrap("chmod", f.name, unix.Fchmod(f.fd, perm)) }

// Setxattr sets an extended attribute.
func (f *File) Setxattr(attr, value string) error {
	return wrap("setxattr "+attr, f.name, unix.Fsetxattr(f.fd, attr, []byte(value), 0))
}

// Chtimes sets the times; after it nothing may be written.
func (f *File) Chtimes(d *Dir, atime, mtime time.Time) error { return d.Chtimes(f.name, atime, mtime) }

// Close closes the file.
func (f *File) Close() error { return wrap("close", f.name, unix.Close(f.fd)) }

// Syncfs writes everything of the file system that holds path to the disk.
func Syncfs(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrap("open", path, err)
	}
	defer unix.Close(fd)
	return wrap("syncfs", path, unix.Syncfs(fd))
}

// SyncDir makes the entries of the directory path durable.
func SyncDir(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrap("open", path, err)
	}
	defer unix.Close(fd)
	return wrap("fsync", path, unix.Fsync(fd))
}

// CopyAttributes gives the directory to the owner, permissions, times and extended
// attributes of the directory from, without those that belong to overlayfs.
func CopyAttributes(from, to string, skip func(attr string) bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return wrap("lstat", from, err)
	}
	if err := unix.Lchown(to, int(st.Uid), int(st.Gid)); err != nil {
		return wrap("chown", to, err)
	}
	if err := unix.Chmod(to, st.Mode&0o7777); err != nil {
		return wrap("chmod", to, err)
	}
	attrs, err := listxattr(from)
	if err != nil && !NoXattr(err) {
		return err
	}
	for _, a := range attrs {
		if skip(a) {
			continue
		}
		buf := make([]byte, 64<<10) // the kernel's limit for a value
		n, err := unix.Lgetxattr(from, a, buf)
		if err != nil {
			return wrap("getxattr "+a, from, err)
		}
		if err := unix.Lsetxattr(to, a, buf[:n], 0); err != nil && !NoXattr(err) {
			return wrap("setxattr "+a, to, err)
		}
	}
	ts := []unix.Timespec{st.Atim, st.Mtim}
	return wrap("utimensat", to, unix.UtimesNanoAt(unix.AT_FDCWD, to, ts, unix.AT_SYMLINK_NOFOLLOW))
}

func listxattr(path string) ([]string, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		return nil, wrap("listxattr", path, err)
	}
	var out []string
	for start, i := 0, 0; i < n; i++ {
		if buf[i] == 0 {
			out = append(out, string(buf[start:i]))
			start = i + 1
		}
	}
	return out, nil
}

// Getxattr reads an extended attribute of path itself; "" if it has none.
func Getxattr(path, attr string) string {
	buf := make([]byte, 256)
	n, err := unix.Lgetxattr(path, attr, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// Share makes to a file with the content of from, as cheaply as the file system
// allows: another name of it (if link is set), else a copy of its extents, else
// a copy made by the kernel. to must not exist. from may be a magic link like
// /proc/self/exe.
func Share(from, to string, link bool) error {
	if link {
		err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
		if err == nil {
			return nil
		}
		if errors.Is(err, unix.EEXIST) {
			return wrap("link", to, err)
		}
	}
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) != nil {
		if _, err := io.Copy(dst, src); err != nil { // copy_file_range where it works
			dst.Close()
			return err
		}
	}
	return dst.Close()
}
