package balance_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
)

func hosts(weights ...uint32) []*balance.Host {
	out := make([]*balance.Host, 0, len(weights))
	for i, w := range weights {
		out = append(out, balance.NewHost(&l7.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i), Weight: w}))
	}
	return out
}

func TestWeights(t *testing.T) {
	t.Parallel()
	for _, b := range []l7.Balancing{l7.RoundRobin, l7.Random} {
		s := balance.NewSet(&l7.Cluster{Balancing: b}, hosts(3, 1, 0), nil)
		got := make([]int, 3)
		const n = 50_000
		for range n {
			got[s.Pick(time.Time{}, &balance.Choice{})]++
		}
		for i, share := range []float64{0.6, 0.2, 0.2} {
			if p := float64(got[i]) / n; p < share-0.02 || p > share+0.02 {
				t.Errorf("balancing %d: host %d gets %.3f, want %.3f", b, i, p, share)
			}
		}
	}
}

func TestLeastRequestAvoidsTheBusy(t *testing.T) {
	t.Parallel()
	h := hosts(1, 1)
	h[0].Active.Store(100)
	s := balance.NewSet(&l7.Cluster{Balancing: l7.LeastRequest}, h, nil)
	for range 100 {
		if i := s.Pick(time.Time{}, &balance.Choice{}); i != 1 {
			t.Fatalf("host %d was chosen", i)
		}
	}
}

// TestRingKeepsKeys checks that a key stays where it is when another host goes.
func TestRingKeepsKeys(t *testing.T) {
	t.Parallel()
	all := hosts(1, 1, 1, 1)
	c := &l7.Cluster{Balancing: l7.RingHash}
	before, after := balance.NewSet(c, all, nil), balance.NewSet(c, all[:3], nil)
	moved := 0
	for i := range 1000 {
		choice := &balance.Choice{Hash: balance.Hash(fmt.Sprint(i)), Hashed: true}
		a, b := before.Pick(time.Time{}, choice), after.Pick(time.Time{}, choice)
		if a != 3 && a != b {
			moved++
		}
	}
	if moved > 0 {
		t.Errorf("%d keys moved between hosts that stayed", moved)
	}
}

func TestPriorityAndHealth(t *testing.T) {
	t.Parallel()
	h := []*balance.Host{
		balance.NewHost(&l7.Endpoint{Address: "a", Health: l7.Draining}),
		balance.NewHost(&l7.Endpoint{Address: "b", Priority: 1}),
	}
	s := balance.NewSet(&l7.Cluster{}, h, nil)
	if i := s.Pick(time.Time{}, &balance.Choice{}); i != 1 {
		t.Errorf("host %d, want the healthy one of the lower priority", i)
	}
	s = balance.NewSet(&l7.Cluster{}, h[:1], nil)
	if i := s.Pick(time.Time{}, &balance.Choice{}); i != 0 {
		t.Errorf("host %d, want the draining one if there is no other", i)
	}
	if i := balance.NewSet(&l7.Cluster{}, nil, nil).Pick(time.Time{}, &balance.Choice{}); i != -1 {
		t.Errorf("host %d of none", i)
	}
}

func TestEjectionsGrowAndEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hosts(1, 1, 1)
		o := balance.NewOutliers(&l7.OutlierDetection{Consecutive5xx: 5, BaseEjection: 30 * time.Second, MaxPercent: 34})
		o.SetHosts(h)
		fail := func(i, n int) {
			for range n {
				o.Result(h[i], 500)
			}
		}
		fail(0, 4)
		o.Result(h[0], 200)
		fail(0, 4)
		if h[0].Ejected(time.Now()) {
			t.Error("ejected without five failures in a row")
		}
		fail(0, 1)
		fail(1, 5)
		if !h[0].Ejected(time.Now()) || h[1].Ejected(time.Now()) {
			t.Errorf("ejected %t, %t; want the first alone: no more than a third", h[0].Ejected(time.Now()), h[1].Ejected(time.Now()))
		}
		time.Sleep(31 * time.Second)
		if h[0].Ejected(time.Now()) {
			t.Error("still ejected after 30 s")
		}
		fail(0, 5)
		time.Sleep(45 * time.Second)
		if !h[0].Ejected(time.Now()) {
			t.Error("the second ejection does not last longer")
		}
	})
}
