package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the kernel's unit of process times (USER_HZ).
const tick = 10 * time.Millisecond

// A usage is what a set of processes has used since they started, and holds now.
type usage struct {
	CPU time.Duration
	// Written are bytes that went to storage or to its cache (write_bytes).
	Written int64
	// Wakeups are the times that a thread gave up its core and was run again.
	Wakeups int64
	// RSS, Anon and PSS are MiB: resident, of that not backed by a file, and with
	// shared pages divided among those that share them.
	RSS, Anon, PSS float64
}

// measure sums over processes. One that has ended counts nothing.
func measure(pids []int) (usage, error) {
	var u usage
	for _, pid := range pids {
		if err := u.add(filepath.Join("/proc", strconv.Itoa(pid))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return u, err
		}
	}
	return u, nil
}

func (u *usage) add(proc string) error {
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return err
	}
	// The second field is the name in parentheses; 14 and 15 are user and system time.
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(f) < 13 {
		return fmt.Errorf("%s/stat: %q", proc, stat)
	}
	for _, s := range f[11:13] {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return err
		}
		u.CPU += time.Duration(n) * tick
	}
	io, err := fields(filepath.Join(proc, "io"))
	if err != nil {
		return err
	}
	u.Written += io["write_bytes"]
	memory, err := fields(filepath.Join(proc, "smaps_rollup"))
	if err != nil {
		return err
	}
	u.RSS += float64(memory["Rss"]) / 1024
	u.Anon += float64(memory["Anonymous"]) / 1024
	u.PSS += float64(memory["Pss"]) / 1024
	tasks, err := filepath.Glob(filepath.Join(proc, "task/*/status"))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		status, err := fields(t)
		if err != nil {
			continue // the thread has just ended
		}
		u.Wakeups += status["voluntary_ctxt_switches"]
	}
	return nil
}

// fields reads lines of the form "name: 12 kB"; those without a number are left out.
func fields(path string) (map[string]int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(data)) {
		name, rest, ok := strings.Cut(line, ":")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
				out[name] = n
			}
		}
	}
	return out, nil
}
