package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Root is where the hierarchies are mounted.
const Root = "/sys/fs/cgroup"

// Mode is the layout of a machine's cgroups.
type Mode int

const (
	V1     Mode = iota + 1 // controllers on hierarchies of their own
	V2                     // one unified hierarchy
	Hybrid                 // V1, and an unused unified hierarchy at /sys/fs/cgroup/unified
)

func (m Mode) String() string {
	return [...]string{"unknown", "v1", "v2", "hybrid"}[m]
}

type layout struct {
	mode Mode
	dirs []string // mount points of the hierarchies that containers are put into
}

var detect = sync.OnceValue(func() layout {
	var s unix.Statfs_t
	if err := unix.Statfs(Root, &s); err == nil && s.Type == unix.CGROUP2_SUPER_MAGIC {
		return layout{V2, []string{Root}}
	}
	l := layout{mode: V1}
	entries, _ := os.ReadDir(Root)
	for _, e := range entries {
		dir := filepath.Join(Root, e.Name())
		switch {
		case !e.IsDir(): // "cpu" may be a link to "cpu,cpuacct"
		case unix.Statfs(dir, &s) != nil:
		case s.Type == unix.CGROUP_SUPER_MAGIC:
			l.dirs = append(l.dirs, dir)
		case s.Type == unix.CGROUP2_SUPER_MAGIC:
			l.mode = Hybrid
		}
	}
	return l
})

// Detect returns the layout of this machine.
func Detect() Mode { return detect().mode }

// Dirs returns the directories of a group, existing or not, one a hierarchy.
func Dirs(path string) []string {
	l := detect()
	dirs := make([]string, len(l.dirs))
	for i, d := range l.dirs {
		dirs[i] = filepath.Join(d, filepath.Clean("/"+path))
	}
	return dirs
}

// Dir returns the directory of a group in the hierarchy of one controller.
func Dir(controller, path string) string {
	if Detect() == V2 {
		controller = ""
	}
	return filepath.Join(Root, controller, filepath.Clean("/"+path))
}

// Has reports whether a controller is usable on this machine.
func Has(controller string) bool {
	if Detect() == V2 {
		return slices.Contains(fields(filepath.Join(Root, "cgroup.controllers")), controller)
	}
	_, err := os.Stat(filepath.Join(Root, controller))
	return err == nil
}

// HasSwap reports whether swap can be limited.
func HasSwap() bool {
	name := "memory.memsw.limit_in_bytes"
	if Detect() == V2 {
		// The root group has no memory files; the kernel has swap accounting whenever it has swap.
		_, err := os.Stat("/proc/swaps")
		return err == nil
	}
	_, err := os.Stat(filepath.Join(Root, "memory", name))
	return err == nil
}
