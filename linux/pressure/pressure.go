package pressure

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Filesystem is one file system at one moment. Sizes are in bytes.
type Filesystem struct {
	Device uint64
	// Capacity is what programs may fill: without the blocks that are kept for root,
	// which no df counts either.
	Capacity, Available, Used uint64
	Inodes, InodesFree        uint64 // 0 where there is no such limit (btrfs)
}

// ReadFilesystem describes the file system that holds path, or the nearest of its
// parents that exists.
func ReadFilesystem(path string) (Filesystem, error) {
	for {
		var st unix.Statfs_t
		var dev unix.Stat_t
		err := unix.Statfs(path, &st)
		if err == nil {
			err = unix.Stat(path, &dev)
		}
		if err == nil {
			size := uint64(st.Bsize) //nolint:gosec // never negative
			f := Filesystem{Device: dev.Dev, Available: st.Bavail * size, Used: (st.Blocks - min(st.Blocks, st.Bfree)) * size, Inodes: st.Files, InodesFree: st.Ffree}
			f.Capacity = f.Used + f.Available
			return f, nil
		}
		if path == "/" || path == "." {
			return Filesystem{}, fmt.Errorf("file system of %s: %w", path, err)
		}
		path = filepath.Dir(path)
	}
}

// Processes returns how many processes and threads there are, and may be.
func Processes() (running, most int64, err error) {
	b, err := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 4 {
		return 0, 0, fmt.Errorf("/proc/loadavg has %d fields", len(fields))
	}
	_, all, _ := strings.Cut(fields[3], "/")
	if running, err = strconv.ParseInt(all, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		if b, err := os.ReadFile(file); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && (most == 0 || n < most) {
				most = n
			}
		}
	}
	return running, most, nil
}
