package mount

import (
	"os"

	"golang.org/x/sys/unix"
)

// Mapped mounts source, a file or a directory, at target, with the mounts below it left out. Its
// files show the IDs that they have in the user namespace that is pinned at userns:
// what belongs to user 0 belongs to that namespace's root (Linux 5.12, and a file
// system that can).
func Mapped(source, target, userns string) error {
	ns, err := os.Open(userns)
	if err != nil {
		return err
	}
	defer ns.Close()
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return wrap("open", source, err)
	}
	defer unix.Close(tree)
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, attr); err != nil {
		return wrap("map the IDs of", source, err)
	}
	return wrap("mount on", target, unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH))
}
