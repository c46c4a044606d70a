package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Detail is what Stats leaves out: counters that are read when metrics are asked
// for. What a machine's kernel does not count is zero, or not there.
type Detail struct {
	UserNanos, SystemNanos    uint64
	Periods, ThrottledPeriods uint64
	ThrottledNanos            uint64
	Shares, Period            uint64 // as they are set, in version 1's terms
	Quota                     int64  // 0: none

	Cache, MappedFile, Kernel uint64
	Peak                      uint64 // the most that was ever charged
	Failures                  uint64 // how often the limit was hit
	MemoryLimit, SwapLimit    uint64 // 0: none; SwapLimit is of memory and swap together
	Reservation               uint64 // 0: none
	OOMKills                  uint64

	Threads, ThreadsMax uint64 // ThreadsMax 0: no limit
	IO                  []IO
	Huge                []Huge
	Pressure            []Pressure
}

// IO is what a group read and wrote on one block device.
type IO struct {
	Major, Minor                         uint64
	ReadBytes, WriteBytes, Reads, Writes uint64
}

// Huge is the use of huge pages of one size, such as "2MB".
type Huge struct {
	Size      string
	Used, Max uint64
}

// Pressure is how long a group's processes waited for a resource, "cpu", "memory" or
// "io": some of them, or all at the same time (stalled). Only version 2 counts it.
type Pressure struct {
	Resource                     string
	WaitingMicros, StalledMicros uint64
}

// ReadDetail returns the detailed counters of a group.
func ReadDetail(path string) Detail {
	if Detect() == V2 {
		return readDetailV2(Dir("", path))
	}
	var d Detail
	cpu, acct, memory := Dir("cpu", path), Dir("cpuacct", path), Dir("memory", path)
	ticks := table(filepath.Join(acct, "cpuacct.stat"))
	d.UserNanos, d.SystemNanos = ticks["user"]*nanosPerTick, ticks["system"]*nanosPerTick
	stat := table(filepath.Join(cpu, "cpu.stat"))
	d.Periods, d.ThrottledPeriods, d.ThrottledNanos = stat["nr_periods"], stat["nr_throttled"], stat["throttled_time"]
	d.Shares, d.Period = number(filepath.Join(cpu, "cpu.shares")), number(filepath.Join(cpu, "cpu.cfs_period_us"))
	if quota := fields(filepath.Join(cpu, "cpu.cfs_quota_us")); len(quota) > 0 && quota[0] != "-1" {
		d.Quota, _ = strconv.ParseInt(quota[0], 10, 64)
	}
	mem := table(filepath.Join(memory, "memory.stat"))
	d.Cache, d.MappedFile = mem["total_cache"], mem["total_mapped_file"]
	d.Kernel = number(filepath.Join(memory, "memory.kmem.usage_in_bytes"))
	d.Peak = number(filepath.Join(memory, "memory.max_usage_in_bytes"))
	d.Failures = number(filepath.Join(memory, "memory.failcnt"))
	d.MemoryLimit = limited(filepath.Join(memory, "memory.limit_in_bytes"))
	d.SwapLimit = limited(filepath.Join(memory, "memory.memsw.limit_in_bytes"))
	d.Reservation = limited(filepath.Join(memory, "memory.soft_limit_in_bytes"))
	d.OOMKills = OOMKills(filepath.Join(memory, "memory.oom_control"))
	pids := Dir("pids", path)
	d.Threads, d.ThreadsMax = number(filepath.Join(pids, "pids.current")), number(filepath.Join(pids, "pids.max"))
	d.IO = ioV1(Dir("blkio", path))
	d.Huge = huge(Dir("hugetlb", path), "hugetlb.*.usage_in_bytes", ".usage_in_bytes", ".max_usage_in_bytes")
	return d
}

func readDetailV2(dir string) Detail {
	var d Detail
	stat := table(filepath.Join(dir, "cpu.stat"))
	d.UserNanos, d.SystemNanos = stat["user_usec"]*1000, stat["system_usec"]*1000
	d.Periods, d.ThrottledPeriods, d.ThrottledNanos = stat["nr_periods"], stat["nr_throttled"], stat["throttled_usec"]*1000
	if weight := number(filepath.Join(dir, "cpu.weight")); weight > 0 {
		d.Shares = 2 + (weight-1)*262142/9999
	}
	if max := fields(filepath.Join(dir, "cpu.max")); len(max) == 2 {
		d.Quota, _ = strconv.ParseInt(max[0], 10, 64) // "max" reads as 0
		d.Period, _ = strconv.ParseUint(max[1], 10, 64)
	}
	mem := table(filepath.Join(dir, "memory.stat"))
	d.Cache, d.MappedFile, d.Kernel = mem["file"], mem["file_mapped"], mem["kernel"]
	d.Peak = number(filepath.Join(dir, "memory.peak"))
	events := table(filepath.Join(dir, "memory.events"))
	d.Failures, d.OOMKills = events["max"], events["oom_kill"]
	d.MemoryLimit = number(filepath.Join(dir, "memory.max"))
	if swap := fields(filepath.Join(dir, "memory.swap.max")); len(swap) > 0 && swap[0] != "max" && d.MemoryLimit > 0 {
		d.SwapLimit = d.MemoryLimit + number(filepath.Join(dir, "memory.swap.max"))
	}
	d.Reservation = number(filepath.Join(dir, "memory.low"))
	d.Threads, d.ThreadsMax = number(filepath.Join(dir, "pids.current")), number(filepath.Join(dir, "pids.max"))
	d.IO = ioV2(filepath.Join(dir, "io.stat"))
	d.Huge = huge(dir, "hugetlb.*.current", ".current", ".max")
	for _, resource := range []string{"cpu", "memory", "io"} {
		if p, ok := pressure(filepath.Join(dir, resource+".pressure")); ok {
			p.Resource = resource
			d.Pressure = append(d.Pressure, p)
		}
	}
	return d
}

// nanosPerTick is the unit of cpuacct.stat: the kernel shows a hundred ticks a second
// to programs, whatever it uses itself.
const nanosPerTick = 10_000_000

// limited reads a limit of version 1, where none is a very large number.
func limited(file string) uint64 {
	if n := number(file); n < unlimited {
		return n
	}
	return 0
}

// ioV1 reads lines like "254:0 Read 4096".
func ioV1(dir string) []IO {
	var list []IO
	add := func(file string, read, write func(*IO) *uint64) {
		f := fields(filepath.Join(dir, file))
		for i := 0; i+2 < len(f); {
			major, minor, ok := device(f[i])
			if !ok {
				i++ // the line "Total 0"
				continue
			}
			n, _ := strconv.ParseUint(f[i+2], 10, 64)
			switch e := entry(&list, major, minor); f[i+1] {
			case "Read":
				*read(e) = n
			case "Write":
				*write(e) = n
			}
			i += 3
		}
	}
	add("blkio.throttle.io_service_bytes_recursive", func(e *IO) *uint64 { return &e.ReadBytes }, func(e *IO) *uint64 { return &e.WriteBytes })
	add("blkio.throttle.io_serviced_recursive", func(e *IO) *uint64 { return &e.Reads }, func(e *IO) *uint64 { return &e.Writes })
	return list
}

// ioV2 reads lines like "254:0 rbytes=4096 wbytes=0 rios=1 wios=0".
func ioV2(file string) []IO {
	var list []IO
	var e *IO
	for _, f := range fields(file) {
		if major, minor, ok := device(f); ok {
			e = entry(&list, major, minor)
			continue
		}
		key, value, _ := strings.Cut(f, "=")
		n, _ := strconv.ParseUint(value, 10, 64)
		if e == nil {
			continue
		}
		switch key {
		case "rbytes":
			e.ReadBytes = n
		case "wbytes":
			e.WriteBytes = n
		case "rios":
			e.Reads = n
		case "wios":
			e.Writes = n
		}
	}
	return list
}

func device(s string) (major, minor uint64, ok bool) {
	a, b, found := strings.Cut(s, ":")
	major, err1 := strconv.ParseUint(a, 10, 64)
	minor, err2 := strconv.ParseUint(b, 10, 64)
	return major, minor, found && err1 == nil && err2 == nil
}

func entry(list *[]IO, major, minor uint64) *IO {
	i := slices.IndexFunc(*list, func(e IO) bool { return e.Major == major && e.Minor == minor })
	if i < 0 {
		i = len(*list)
		*list = append(*list, IO{Major: major, Minor: minor})
	}
	return &(*list)[i]
}

func huge(dir, pattern, used, most string) []Huge {
	files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well-formed
	var list []Huge
	for _, f := range files {
		size := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "hugetlb."), used)
		if strings.Contains(size, ".") {
			continue // hugetlb.2MB.rsvd…
		}
		list = append(list, Huge{size, number(f), number(strings.TrimSuffix(f, used) + most)})
	}
	return list
}

// pressure reads
//
//	some avg10=0.00 avg60=0.00 avg300=0.00 total=0
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=0
func pressure(file string) (p Pressure, ok bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return p, false
	}
	for line := range strings.Lines(string(b)) {
		_, total, _ := strings.Cut(strings.TrimSpace(line), "total=")
		n, _ := strconv.ParseUint(total, 10, 64)
		switch {
		case strings.HasPrefix(line, "some "):
			p.WaitingMicros = n
		case strings.HasPrefix(line, "full "):
			p.StalledMicros = n
		}
	}
	return p, true
}

// Descriptors counts the open files, and the sockets among them, of processes. One
// that ends meanwhile counts as far as it was seen.
func Descriptors(pids []int) (files, sockets uint64) {
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		files += uint64(len(entries))
		for _, e := range entries {
			var st unix.Stat_t
			if unix.Stat(filepath.Join(dir, e.Name()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
				sockets++
			}
		}
	}
	return files, sockets
}
