package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// An Identity names one process of one boot.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// Identify returns the identity of a process that exists, be it a zombie.
func Identify(pid int) (Identity, error) {
	fields, err := stat(pid)
	if err != nil {
		return Identity{}, err
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Identity{}, fmt.Errorf("start time of process %d: %w", pid, err)
	}
	return Identity{PID: pid, Start: start, Boot: BootID()}, nil
}

// Alive reports whether exactly this process still runs (zombies do not).
func (i Identity) Alive() bool {
	if i.PID <= 0 || i.Boot != BootID() {
		return false
	}
	fields, err := stat(i.PID)
	if err != nil {
		return false
	}
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	return start == i.Start && fields[0] != "Z" && fields[0] != "X"
}

// Parent returns the parent's pid.
func Parent(pid int) (int, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(fields[1])
}

// stat returns the fields of /proc/PID/stat from the third on: the second, the
// command, may contain anything.
func stat(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat is malformed", pid)
	}
	return fields, nil
}

// BootID changes with every start of the machine.
func BootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}
