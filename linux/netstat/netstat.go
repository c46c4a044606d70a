package netstat

import (
	"os"
	"strconv"
	"strings"
)

// An Interface has the counters of one interface since it was made.
type Interface struct {
	Name                                 string
	RxBytes, RxErrors, TxBytes, TxErrors uint64

	RxPackets, RxDropped, TxPackets, TxDropped uint64
}

// Read parses a file of the form of /proc/PID/net/dev, which shows the network
// namespace of that process.
func Read(path string) ([]Interface, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Interface
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if !ok || len(f) < 12 {
			continue // the two lines of headings
		}
		n := func(i int) uint64 {
			v, _ := strconv.ParseUint(f[i], 10, 64)
			return v
		}
		list = append(list, Interface{
			Name:    strings.TrimSpace(name),
			RxBytes: n(0), RxErrors: n(2), TxBytes: n(8), TxErrors: n(10),
			RxPackets: n(1), RxDropped: n(3), TxPackets: n(9), TxDropped: n(11),
		})
	}
	return list, nil
}
