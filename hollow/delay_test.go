package hollow

import (
	"slices"
	"testing"
	"time"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"300ms", "300ms"}, {"0", "0s"}, {"100ms-2s", "100ms-2s"}, {"p50=300ms,p99=2s", "p50=300ms,p99=2s"}, {"never", "never"},
		{"", ""}, {"soon", ""}, {"-1s", ""}, {"2s-1s", ""}, {"1s-", ""}, {"p50=0s,p99=1s", ""}, {"p50=1s", ""}, {"p50=2s,p99=1s", ""},
	} {
		d, err := ParseDelay(tt.text)
		if (err == nil) != (tt.want != "") {
			t.Errorf("%q: %v", tt.text, err)
		} else if err == nil && d.String() != tt.want {
			t.Errorf("%q is %s", tt.text, d)
		}
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	draw := func(text string) []time.Duration {
		d, err := ParseDelay(text)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]time.Duration, 10_001)
		for i := range all {
			var ok bool
			if all[i], ok = d.sample(); !ok {
				t.Fatalf("%s never happens", text)
			}
		}
		slices.Sort(all)
		return all
	}
	if all := draw("100ms-200ms"); all[0] < 100*time.Millisecond || all[len(all)-1] >= 200*time.Millisecond || all[0] == all[len(all)-1] {
		t.Errorf("a range gives %s to %s", all[0], all[len(all)-1])
	}
	// Of ten thousand, the median and the 99th percentile are off by more than that
	// only once in far more than a million runs.
	all := draw("p50=100ms,p99=1s")
	if m := all[5000]; m < 85*time.Millisecond || m > 115*time.Millisecond {
		t.Errorf("the median is %s", m)
	}
	if p := all[9900]; p < 700*time.Millisecond || p > 1400*time.Millisecond {
		t.Errorf("the 99th percentile is %s", p)
	}
	if _, ok := (Delay{kind: never}).sample(); ok {
		t.Error("never happens")
	}
}
