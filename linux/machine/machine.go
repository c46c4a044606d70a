package machine

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Memory returns the machine's memory in bytes, 0 if it cannot be read.
func Memory() int64 { return meminfo("MemTotal") }

// MemoryAvailable returns the memory that could be used, in bytes.
func MemoryAvailable() int64 { return meminfo("MemAvailable") }

func meminfo(field string) int64 { return meminfos()[field] }

// meminfos returns all of /proc/meminfo, in bytes.
func meminfos() map[string]int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	out := map[string]int64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		out[name] = kb << 10
	}
	return out
}

// MemoryUse is how the machine's memory is used, in bytes.
type MemoryUse struct {
	Total      uint64
	Used       uint64 // with the page cache
	WorkingSet uint64 // used, less the inactive part of the page cache
	Anonymous  uint64
	SwapTotal  uint64
	SwapUsed   uint64
}

// ReadMemoryUse reads it; the zero value if it cannot be read.
func ReadMemoryUse() MemoryUse {
	m := meminfos()
	of := func(field string) uint64 { return uint64(max(0, m[field])) }
	u := MemoryUse{Total: of("MemTotal"), Anonymous: of("AnonPages"), SwapTotal: of("SwapTotal")}
	u.Used = u.Total - min(u.Total, of("MemFree"))
	u.WorkingSet = u.Used - min(u.Used, of("Inactive(file)"))
	u.SwapUsed = u.SwapTotal - min(u.SwapTotal, of("SwapFree"))
	return u
}

// Disk returns size and free space in bytes of the file system that holds path
// or the nearest of its parents that exists.
func Disk(path string) (size, free int64) {
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err == nil {
			return int64(st.Blocks) * st.Bsize, int64(st.Bavail) * st.Bsize //nolint:gosec // file systems are smaller than 2^63
		}
		if path == "/" || path == "." {
			return 0, 0
		}
		path = filepath.Dir(path)
	}
}

// An Identity is what a node reports of itself.
type Identity struct {
	MachineID, SystemUUID, BootID, Kernel, OSImage, Hostname string
}

// Identify reads the machine's identity; what cannot be read is empty.
func Identify() Identity {
	id := Identity{
		MachineID:  readLine("/etc/machine-id", "/var/lib/dbus/machine-id"),
		SystemUUID: strings.ToLower(readLine("/sys/class/dmi/id/product_uuid", "/sys/hypervisor/uuid")),
		BootID:     readLine("/proc/sys/kernel/random/boot_id"),
		Kernel:     readLine("/proc/sys/kernel/osrelease"),
		OSImage:    osImage(),
	}
	if id.SystemUUID == "" {
		id.SystemUUID = id.MachineID
	}
	id.Hostname, _ = os.Hostname()
	return id
}

func readLine(paths ...string) string {
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	return ""
}

func osImage() string {
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "Linux"
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return "Linux"
}

// Addresses returns the machine's address: of the interface with the default
// route, else the first one that is not loopback or link-local; IPv4 before IPv6.
func Addresses() []net.IP {
	// A connected UDP socket sends nothing; it only asks the routing table.
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil { //nolint:noctx // no packet, no wait
		ip := c.LocalAddr().(*net.UDPAddr).IP //nolint:forcetypeassert // of a UDP socket
		c.Close()                             //nolint:errcheck // nothing was sent
		if !ip.IsLoopback() && !ip.IsUnspecified() {
			return []net.IP{ip}
		}
	}
	var v4, v6 []net.IP
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			v4 = append(v4, n.IP)
		} else {
			v6 = append(v6, n.IP)
		}
	}
	if len(v4) > 0 {
		return v4[:1]
	}
	if len(v6) > 0 {
		return v6[:1]
	}
	return nil
}

// BootTime is when the machine started, zero if it cannot be read.
func BootTime() time.Time {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "btime "); ok {
			s, _ := strconv.ParseInt(v, 10, 64)
			return time.Unix(s, 0)
		}
	}
	return time.Time{}
}

// CPUTime is how long the machine's processors have worked together, in nanoseconds.
func CPUTime() uint64 {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	var ticks uint64
	for i, f := range fields {
		// user nice system idle iowait irq softirq steal: all but the idle ones
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		v, _ := strconv.ParseUint(f, 10, 64)
		ticks += v
	}
	return ticks * 10_000_000 // USER_HZ is 100 everywhere
}
