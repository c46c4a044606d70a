package pressure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// HugePages returns how many bytes the machine keeps in huge pages, by their size as
// resources name it: 2Mi, 1Gi. A size that the machine knows but does not keep is 0.
func HugePages() map[string]int64 {
	dirs, _ := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-*kB")
	out := make(map[string]int64, len(dirs))
	for _, dir := range dirs {
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB"), 10, 64)
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, "nr_hugepages"))
		if err != nil {
			continue
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		name := strconv.FormatInt(kb, 10) + "Ki"
		switch {
		case kb >= 1<<20:
			name = strconv.FormatInt(kb>>20, 10) + "Gi"
		case kb >= 1<<10:
			name = strconv.FormatInt(kb>>10, 10) + "Mi"
		}
		out[name] = n * kb << 10
	}
	return out
}
