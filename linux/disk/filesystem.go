package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Tools returns nil if file systems of the kind can be made here, else what is missing.
func Tools(kind string) error {
	if _, err := look("mkfs." + kind); err != nil {
		return fmt.Errorf("mkfs.%s is not installed (Debian's package e2fsprogs has mkfs.ext4, xfsprogs has mkfs.xfs)", kind)
	}
	return nil
}

// look finds a program, also in the directories that only root's shells search.
func look(name string) (string, error) {
	for _, dir := range []string{"/usr/sbin/", "/sbin/", "/usr/local/sbin/"} {
		if st, err := os.Stat(dir + name); err == nil && !st.IsDir() {
			return dir + name, nil
		}
	}
	return exec.LookPath(name)
}

// Format makes an empty file system on a file or device.
func Format(ctx context.Context, path, kind string) error {
	program, err := look("mkfs." + kind)
	if err != nil {
		return Tools(kind)
	}
	var args []string
	switch kind {
	case "ext4", "ext3", "ext2":
		// No blocks are kept for root, and tables are zeroed when they are first used.
		args = []string{"-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"}
	case "xfs":
		args = []string{"-q", "-f", "-K"}
	}
	return run(ctx, program, append(args, path)...)
}

func run(ctx context.Context, program string, args ...string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Kind reads which file system is on a file or device; "" if it is none of ext4 and xfs.
func Kind(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	var head [2048]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	switch {
	case binary.LittleEndian.Uint16(head[1024+56:]) == 0xEF53:
		return "ext4", nil
	case bytes.HasPrefix(head[:], []byte("XFSB")):
		return "xfs", nil
	}
	return "", nil
}

// ext4Size reads the size in bytes of an ext4 file system from its superblock.
func ext4Size(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	var super [1024]byte
	if _, err := f.ReadAt(super[:], 1024); err != nil {
		return 0, err
	}
	blocks := int64(binary.LittleEndian.Uint32(super[4:]))
	const feature64bit = 0x80
	if binary.LittleEndian.Uint32(super[0x60:])&feature64bit != 0 {
		blocks |= int64(binary.LittleEndian.Uint32(super[0x150:])) << 32
	}
	return blocks << (10 + binary.LittleEndian.Uint32(super[24:])), nil
}

// size is how many bytes a file or a block device holds.
func size(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	return f.Seek(0, io.SeekEnd)
}

// GrowOffline makes an ext4 file system that is not mounted as large as its
// file. It does nothing when it is already, or is no ext4.
func GrowOffline(ctx context.Context, path string) error {
	kind, err := Kind(path)
	if err != nil || kind != "ext4" {
		return err
	}
	room, err := size(path)
	if err != nil {
		return err
	}
	have, err := ext4Size(path)
	// A last piece that is less than a block group's tables cannot be used.
	if err != nil || room-have < 1<<20 {
		return err
	}
	program, err := look("resize2fs")
	if err != nil {
		return fmt.Errorf("resize2fs is not installed (Debian's package e2fsprogs): %w", err)
	}
	if err := Repair(ctx, path, true); err != nil {
		return err
	}
	return run(ctx, program, path)
}

// Repair mends an ext4 file system that is not mounted, as far as that needs no
// decision; force looks although it is marked as clean.
func Repair(ctx context.Context, path string, force bool) error {
	program, err := look("e2fsck")
	if err != nil {
		return fmt.Errorf("e2fsck is not installed (Debian's package e2fsprogs): %w", err)
	}
	args := []string{"-p"}
	if force {
		args = append(args, "-f")
	}
	err = run(ctx, program, append(args, path)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // errors were mended
		return nil
	}
	return err
}

// ErrNeedsUnmount is returned by GrowOnline when this process may not grow a
// mounted file system (ext4 asks for CAP_SYS_RESOURCE).
var ErrNeedsUnmount = errors.New("the file system can only grow while it is not mounted")

// ext4ResizeFS is EXT4_IOC_RESIZE_FS, _IOW('f', 16, __u64).
const ext4ResizeFS = 0x40086610

// GrowOnline makes the file system mounted at dir as large as size, in bytes.
func GrowOnline(ctx context.Context, dir string, size int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC:
		return growExt4(dir, uint64(size/st.Bsize)) //nolint:gosec // never negative
	case unix.XFS_SUPER_MAGIC:
		program, err := look("xfs_growfs")
		if err != nil {
			return fmt.Errorf("xfs_growfs is not installed (Debian's package xfsprogs): %w", err)
		}
		return run(ctx, program, dir)
	}
	return fmt.Errorf("%s: file systems of type %#x cannot grow", dir, st.Type)
}

func growExt4(dir string, blocks uint64) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only referred to
	err = ioctlUint64(f, ext4ResizeFS, &blocks)
	if errors.Is(err, unix.EPERM) {
		return ErrNeedsUnmount
	}
	if err != nil {
		return fmt.Errorf("grow the file system at %s: %w", dir, err)
	}
	return nil
}
