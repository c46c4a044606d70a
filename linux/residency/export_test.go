package residency

import (
	"fmt"
	"io"
)

// Program shows what program finds.
func Program(smaps io.Reader, exe string) ([]string, error) {
	regions, err := program(smaps, exe)
	var out []string
	for _, r := range regions {
		out = append(out, fmt.Sprintf("%x-%x %d", r.start, r.end, r.resident))
	}
	return out, err
}
