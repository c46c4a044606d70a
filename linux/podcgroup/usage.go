package podcgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory returns what all pods use together, without the page cache that nobody has
// touched for a while, and what they may use; ok is false without such a bound.
func (t *Tree) Memory() (used, limit uint64, ok bool) {
	t.mu.Lock()
	bound := t.node.memory
	t.mu.Unlock()
	if bound <= 0 {
		return 0, 0, false
	}
	dir, current, inactive := filepath.Join(t.mountPoint, "memory", t.root, "kubepods"), "memory.usage_in_bytes", "total_inactive_file"
	if t.unified {
		dir, current, inactive = filepath.Join(t.mountPoint, t.root, "kubepods"), "memory.current", "inactive_file"
	}
	b, err := os.ReadFile(filepath.Join(dir, current))
	if err != nil {
		return 0, 0, false // there was no pod yet
	}
	used, err = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
	for line := range strings.Lines(string(stat)) {
		if v, found := strings.CutPrefix(line, inactive+" "); found {
			n, _ := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			used -= min(used, n)
		}
	}
	return used, uint64(bound), true
}
