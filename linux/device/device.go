package device

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNotDevice is returned when a path is neither a character nor a block device.
var ErrNotDevice = errors.New("not a device node")

// A Node is one device node.
type Node struct {
	Path         string
	Type         string // "c" or "b"
	Major, Minor int64
	Mode         os.FileMode // permission bits
	UID, GID     uint32
}

// Stat describes the device node at path; links are followed.
func Stat(path string) (Node, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Node{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	n := Node{
		Path: path, Mode: os.FileMode(st.Mode & 0o777), UID: st.Uid, GID: st.Gid,
		Major: int64(unix.Major(st.Rdev)), Minor: int64(unix.Minor(st.Rdev)),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		n.Type = "c"
	case unix.S_IFBLK:
		n.Type = "b"
	default:
		return n, &os.PathError{Op: "stat", Path: path, Err: ErrNotDevice}
	}
	return n, nil
}

// All returns the device nodes below dir, except those that every container has
// of its own: terminals, shared memory, message queues.
func All(dir string) []Node {
	skip := map[string]bool{"pts": true, "shm": true, "fd": true, "mqueue": true, ".lxc": true, ".udev": true}
	var nodes []Node
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir():
			if skip[d.Name()] && path != dir {
				return filepath.SkipDir
			}
			return nil
		case d.Type()&fs.ModeDevice == 0 || d.Name() == "console":
			return nil
		}
		if n, err := Stat(path); err == nil {
			nodes = append(nodes, n)
		}
		return nil
	})
	return nodes
}
