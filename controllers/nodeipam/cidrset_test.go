package nodeipam

import (
	"errors"
	"net/netip"
	"testing"
)

func TestCIDRSet(t *testing.T) {
	t.Parallel()
	p := netip.MustParsePrefix
	for _, test := range []struct {
		cluster string
		mask    int
		busy    []string
		want    []string
	}{
		{"10.42.0.0/16", 24, nil, []string{"10.42.0.0/24", "10.42.1.0/24"}},
		{"10.42.0.0/16", 24, []string{"10.42.0.0/24", "10.42.2.0/24"}, []string{"10.42.1.0/24", "10.42.3.0/24"}},
		{"10.42.0.0/16", 24, []string{"10.42.0.0/23", "10.42.2.128/25", "192.168.0.0/16"}, []string{"10.42.3.0/24"}},
		{"10.42.0.0/16", 24, []string{"10.0.0.0/8"}, nil},
		{"10.42.0.0/23", 24, nil, []string{"10.42.0.0/24", "10.42.1.0/24", ""}},
		{"10.42.0.0/24", 24, nil, []string{"10.42.0.0/24", ""}},
		{"fd00:1::/48", 64, nil, []string{"fd00:1::/64", "fd00:1:0:1::/64"}},
		{"fd00:1::/104", 112, []string{"fd00:1::/112"}, []string{"fd00:1::1:0/112"}},
	} {
		set, err := newCIDRSet(p(test.cluster), test.mask)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range test.busy {
			set.occupy(p(b))
		}
		for _, want := range test.want {
			got, err := set.allocate()
			if want == "" {
				if !errors.Is(err, ErrExhausted) {
					t.Errorf("%s: got %s, want exhaustion", test.cluster, got)
				}
			} else if err != nil || got != p(want) {
				t.Errorf("%s with %v: got %s, %v; want %s", test.cluster, test.busy, got, err, want)
			}
		}
	}
	if _, err := newCIDRSet(p("10.42.0.0/16"), 8); err == nil {
		t.Error("a mask shorter than the cluster's is accepted")
	}
}

// TestRelease gives a released range out again, but not as the next one.
func TestRelease(t *testing.T) {
	t.Parallel()
	set, err := newCIDRSet(netip.MustParsePrefix("10.42.0.0/22"), 24)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := set.allocate()
	set.release(first)
	var got []string
	for range 4 {
		p, err := set.allocate()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p.String())
	}
	if got[0] != "10.42.1.0/24" || got[3] != "10.42.0.0/24" {
		t.Errorf("got %v", got)
	}
}
