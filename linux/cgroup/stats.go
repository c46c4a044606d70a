package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Stats are a group's counters at one moment. Sizes are in bytes.
type Stats struct {
	CPUNanos    uint64 // processor time used since the group was made
	Memory      uint64 // charged, page cache included
	WorkingSet  uint64 // charged less the inactive page cache
	RSS         uint64 // anonymous memory
	Limit       uint64 // 0: none
	Swap        uint64
	PageFaults  uint64
	MajorFaults uint64
	Processes   uint64
}

// ErrNoGroup is returned when a group does not exist.
var ErrNoGroup = errors.New("no such cgroup")

// unlimited is what memory.limit_in_bytes shows, rounded to pages, without a limit.
const unlimited = 1 << 62

// Read returns the counters of a group.
func Read(path string) (Stats, error) {
	if Detect() == V2 {
		return readV2(Dir("", path))
	}
	var s Stats
	memory := Dir("memory", path)
	if _, err := os.Stat(memory); err != nil {
		return s, ErrNoGroup
	}
	s.CPUNanos = number(filepath.Join(Dir("cpuacct", path), "cpuacct.usage"))
	s.Memory = number(filepath.Join(memory, "memory.usage_in_bytes"))
	if limit := number(filepath.Join(memory, "memory.limit_in_bytes")); limit < unlimited {
		s.Limit = limit
	}
	stat := table(filepath.Join(memory, "memory.stat"))
	s.RSS, s.Swap = stat["total_rss"], stat["total_swap"]
	s.PageFaults, s.MajorFaults = stat["total_pgfault"], stat["total_pgmajfault"]
	s.WorkingSet = s.Memory - min(s.Memory, stat["total_inactive_file"])
	s.Processes = number(filepath.Join(Dir("pids", path), "pids.current"))
	return s, nil
}

func readV2(dir string) (Stats, error) {
	var s Stats
	if _, err := os.Stat(dir); err != nil {
		return s, ErrNoGroup
	}
	s.CPUNanos = table(filepath.Join(dir, "cpu.stat"))["usage_usec"] * 1000
	s.Memory = number(filepath.Join(dir, "memory.current"))
	s.Limit = number(filepath.Join(dir, "memory.max")) // "max" reads as 0
	stat := table(filepath.Join(dir, "memory.stat"))
	s.RSS, s.PageFaults, s.MajorFaults = stat["anon"], stat["pgfault"], stat["pgmajfault"]
	s.WorkingSet = s.Memory - min(s.Memory, stat["inactive_file"])
	s.Swap = number(filepath.Join(dir, "memory.swap.current"))
	s.Processes = number(filepath.Join(dir, "pids.current"))
	return s, nil
}

// OOMFile is the file in which a group's "oom_kill" counter stands.
func OOMFile(path string) string {
	if Detect() == V2 {
		return filepath.Join(Dir("", path), "memory.events")
	}
	return filepath.Join(Dir("memory", path), "memory.oom_control")
}

// OOMKills returns the counter in a file of OOMFile: how many processes the
// kernel has killed in the group for want of memory.
func OOMKills(file string) uint64 { return table(file)["oom_kill"] }

func number(file string) uint64 {
	f := fields(file)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseUint(f[0], 10, 64)
	return n
}

func table(file string) map[string]uint64 {
	f := fields(file)
	t := make(map[string]uint64, len(f)/2)
	for i := 0; i+1 < len(f); i += 2 {
		t[f[i]], _ = strconv.ParseUint(f[i+1], 10, 64)
	}
	return t
}

func fields(file string) []string {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}
