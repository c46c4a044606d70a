package process

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// capabilityNames is indexed by bit number (linux/capability.h).
var capabilityNames = strings.Fields(`
CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID
CAP_SETPCAP CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW
CAP_IPC_LOCK CAP_IPC_OWNER CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_PACCT
CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_MKNOD
CAP_LEASE CAP_AUDIT_WRITE CAP_AUDIT_CONTROL CAP_SETFCAP CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG
CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF CAP_CHECKPOINT_RESTORE`)

// Capabilities returns the names of those that the calling process has in effect.
func Capabilities() []string {
	mask := effective()
	var names []string
	for bit, name := range capabilityNames {
		if mask&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// KnownCapability reports whether name ("CAP_KILL") is one.
func KnownCapability(name string) bool {
	return slices.Contains(capabilityNames, name)
}

func effective() uint64 {
	b, _ := os.ReadFile("/proc/thread-self/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "CapEff:"); ok {
			mask, _ := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return mask
		}
	}
	return 0
}

// OOMScoreFloor returns the lowest oom_score_adj that the calling process may
// give to its children: its own, or -1000 with CAP_SYS_RESOURCE.
func OOMScoreFloor() int {
	const capSysResource = 24
	if effective()&(1<<capSysResource) != 0 {
		return -1000
	}
	b, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// SetOOMScoreAdj sets the calling process's own value, -1000 to 1000.
func SetOOMScoreAdj(v int) error {
	return os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(v)), 0)
}
