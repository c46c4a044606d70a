package numa

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A CPU is one logical processor.
type CPU struct{ ID, Core, Socket, Node int }

// A Node is a part of the memory with the processors next to it.
type Node struct {
	ID     int
	Memory uint64 // in bytes
}

// A Machine is its processors, sorted, and its nodes, sorted: one node at least.
type Machine struct {
	CPUs  []CPU
	Nodes []Node
}

// Read describes this machine.
func Read() Machine { return ReadAt("/sys/devices/system") }

// ReadAt reads a directory like /sys/devices/system.
func ReadAt(dir string) Machine {
	var m Machine
	nodeOf := map[int]int{}
	nodes, _ := filepath.Glob(filepath.Join(dir, "node", "node[0-9]*"))
	for _, path := range nodes {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "node"))
		if err != nil {
			continue
		}
		m.Nodes = append(m.Nodes, Node{ID: id, Memory: memory(filepath.Join(path, "meminfo"))})
		for _, cpu := range list(filepath.Join(path, "cpulist")) {
			nodeOf[cpu] = id
		}
	}
	if len(m.Nodes) == 0 {
		m.Nodes = []Node{{Memory: memory("/proc/meminfo")}}
	}
	slices.SortFunc(m.Nodes, func(a, b Node) int { return a.ID - b.ID })
	for _, id := range list(filepath.Join(dir, "cpu", "online")) {
		topology := filepath.Join(dir, "cpu", "cpu"+strconv.Itoa(id), "topology")
		core, socket := number(filepath.Join(topology, "core_id"), id), number(filepath.Join(topology, "physical_package_id"), 0)
		m.CPUs = append(m.CPUs, CPU{ID: id, Core: socket<<16 | core, Socket: socket, Node: nodeOf[id]})
	}
	return m
}

func number(file string, otherwise int) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

// list reads "0-3,8".
func list(file string) []int {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []int
	for part := range strings.SplitSeq(strings.TrimSpace(string(b)), ",") {
		first, last, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if ranged {
			if to, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		for i := from; i <= to; i++ {
			out = append(out, i)
		}
	}
	return out
}

// memory reads "Node 0 MemTotal: 123 kB" or "MemTotal: 123 kB".
func memory(file string) uint64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, v, ok := strings.Cut(lines.Text(), "MemTotal:"); ok {
			kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
