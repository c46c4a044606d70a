package residency_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/periplus/periplus/linux/residency"
)

// big is read before and after: what was let go comes back as it was.
var big = strings.Repeat("periplus ", 1000)

func TestRelease(t *testing.T) {
	before := strings.Count(big, "peri")
	for range 3 {
		n, err := residency.Release()
		if err != nil {
			t.Fatal(err)
		}
		if n <= 0 {
			t.Errorf("%d bytes of the program were resident", n)
		}
		// The program runs on, with code that it has not run before and code that it has.
		words := strings.Fields(big)
		slices.Reverse(words)
		if got := strings.Count(strings.Join(words, " "), "peri"); got != before {
			t.Errorf("got %d, want %d", got, before)
		}
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-00500000 r-xp 00000000 00:1f 77 /usr/bin/peri
Size:               1024 kB
Rss:                 512 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 00100000 00:1f 77 /usr/bin/peri
Rss:                  64 kB
Anonymous:             0 kB
00600000-00700000 r--p 00200000 00:1f 77 /usr/bin/peri
Rss:                  64 kB
Anonymous:             4 kB
00700000-00800000 rw-p 00300000 00:1f 77 /usr/bin/peri
Rss:                  64 kB
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 00:1f 78 /usr/share/zoneinfo/UTC
Rss:                   4 kB
Anonymous:             0 kB
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
Rss:                   4 kB
Anonymous:             4 kB
`
	got, err := residency.Program(strings.NewReader(smaps), "/usr/bin/peri")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"400000-500000 524288", "500000-600000 65536"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
