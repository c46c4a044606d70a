package cni_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/periplus/periplus/cni"
)

func TestPoolGivesEachAddressOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := cni.OpenPool(dir, netip.MustParsePrefix("10.42.7.0/29"))
	if err != nil {
		t.Fatal(err)
	}
	// .0 network, .1 gateway, .7 broadcast: five are left.
	for i := range 5 {
		a, err := p.Allocate(fmt.Sprint("s", i))
		if want := netip.AddrFrom4([4]byte{10, 42, 7, byte(2 + i)}); err != nil || a != want {
			t.Fatalf("allocation %d: %v, %v; want %v", i, a, err, want)
		}
	}
	if _, err := p.Allocate("s5"); !errors.Is(err, cni.ErrPoolExhausted) {
		t.Fatalf("full: %v", err)
	}
	if a, err := p.Allocate("s3"); err != nil || a != netip.MustParseAddr("10.42.7.5") {
		t.Errorf("again for the same owner: %v, %v", a, err)
	}
	if err := p.Release("s1"); err != nil {
		t.Fatal(err)
	}

	// Another process sees the same.
	p, err = cni.OpenPool(dir, netip.MustParsePrefix("10.42.7.0/29"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := p.Allocate("s6"); err != nil || a != netip.MustParseAddr("10.42.7.3") {
		t.Errorf("the one that is free: %v, %v", a, err)
	}
	// An address that is wanted is given if it is free, and one of the range.
	if err := p.Release("s3"); err != nil {
		t.Fatal(err)
	}
	five := netip.MustParseAddr("10.42.7.5")
	if a, err := p.Allocate("s8", netip.MustParseAddr("10.42.7.1"), netip.MustParseAddr("10.9.9.9"), netip.MustParseAddr("10.42.7.3"), five); err != nil || a != five {
		t.Errorf("wanted %s, got %v %v", five, a, err)
	}
	if _, err := p.Allocate("s7"); !errors.Is(err, cni.ErrPoolExhausted) {
		t.Errorf("full: %v", err)
	}
}

func TestPoolReusesLast(t *testing.T) {
	t.Parallel()
	dir, prefix := t.TempDir(), netip.MustParsePrefix("10.42.7.0/29")
	var last netip.Addr
	for i := range 12 {
		// A new process each time: the order survives.
		p, err := cni.OpenPool(dir, prefix)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Allocate(fmt.Sprint(i))
		if err != nil || a == last {
			t.Fatalf("%d: %v after %v, %v", i, a, last, err)
		}
		last = a
		if err := p.Release(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	pools, err := cni.OpenPools(dir)
	if err != nil || len(pools) != 1 || pools[0].Prefix() != prefix {
		t.Errorf("pools: %v, %v", pools, err)
	}
}

func FuzzPool(f *testing.F) {
	f.Add("10.42.0.0/24", []byte{0, 1, 2, 0x81, 3})
	f.Add("fd00::/120", []byte{9, 0x89, 9})
	f.Add("10.0.0.0/30", []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, cidr string, ops []byte) {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return
		}
		p, err := cni.OpenPool(t.TempDir(), prefix)
		if err != nil {
			return
		}
		have := map[string]netip.Addr{}
		for _, op := range ops {
			owner := fmt.Sprint("o", op&0x7f)
			if op&0x80 != 0 {
				if err := p.Release(owner); err != nil {
					t.Fatal(err)
				}
				delete(have, owner)
				continue
			}
			a, err := p.Allocate(owner)
			if errors.Is(err, cni.ErrPoolExhausted) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if !prefix.Contains(a) || a == p.Gateway() || a == prefix.Masked().Addr() {
				t.Fatalf("%s is not a pod's address in %s", a, prefix)
			}
			for o, b := range have {
				if b == a && o != owner {
					t.Fatalf("%s given to %s and %s", a, o, owner)
				}
			}
			have[owner] = a
		}
	})
}
