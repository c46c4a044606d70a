package residency

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"
)

// Release returns the free part of the heap, and lets go of the pages of the program
// itself: most of a big one runs only while it starts (tables, registrations). What
// runs again is mapped again from the page cache, which takes microseconds. It returns
// how many bytes of the program were resident before.
func Release() (int64, error) {
	debug.FreeOSMemory()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return 0, err
	}
	regions, err := program(f, exe)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, r := range regions {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED); errno != 0 {
			return total, fmt.Errorf("madvise: %w", errno)
		}
		total += r.resident
	}
	return total, nil
}

// region is a mapping of which the file has every byte.
type region struct {
	start, end uintptr
	resident   int64 // bytes
}

// program finds the mappings of a file that nobody can write to and nobody has
// written to, in the format of /proc/PID/smaps: proc(5).
func program(smaps io.Reader, exe string) ([]region, error) {
	var out []region
	var at *region
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) < 2 {
			continue
		}
		if start, end, ok := bytes.Cut(fields[0], []byte("-")); ok && !bytes.HasSuffix(fields[0], []byte(":")) {
			at = nil
			perm := string(fields[1])
			if len(fields) < 6 || string(bytes.Join(fields[5:], []byte(" "))) != exe || perm != "r-xp" && perm != "r--p" {
				continue
			}
			a, err := strconv.ParseUint(string(start), 16, 64)
			if err != nil {
				return nil, fmt.Errorf("smaps: %w", err)
			}
			b, err := strconv.ParseUint(string(end), 16, 64)
			if err != nil {
				return nil, fmt.Errorf("smaps: %w", err)
			}
			out = append(out, region{start: uintptr(a), end: uintptr(b)})
			at = &out[len(out)-1]
			continue
		}
		if at == nil {
			continue
		}
		kb, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			continue // a line that is not a number, as of flags
		}
		switch string(fields[0]) {
		case "Rss:":
			at.resident = kb << 10
		case "Anonymous:":
			if kb != 0 { // written to, as by a relocation: the file does not have it
				out = out[:len(out)-1]
				at = nil
			}
		}
	}
	return out, lines.Err()
}
