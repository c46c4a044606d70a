package garbage

import (
	"testing"
	"time"
)

func TestPercentage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live, grown uint64
		in          time.Duration
		want        int
	}{
		"idle":                  {30 << 20, 15 << 20, time.Minute, 50},
		"at once":               {30 << 20, 15 << 20, 0, 50},
		"busy, small":           {32 << 20, 16 << 20, 100 * time.Millisecond, 300},
		"busy, tiny":            {1 << 20, 1 << 20, 10 * time.Millisecond, 1200},
		"busy, large":           {1 << 30, 512 << 20, 4 * time.Second, 50},
		"busy, what is lent is": {96 << 20, 96 << 20, time.Second, 100},
	} {
		if got := percentage(c.live, c.grown, c.in); got != c.want {
			t.Errorf("%s: %d %%, want %d", name, got, c.want)
		}
	}
}
