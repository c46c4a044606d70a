package link_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/netnstest"
)

// pairs makes n veth pairs, p0 … pn-1 on the side of the calling thread.
func pairs(t testing.TB, c *link.Conn, n int) {
	t.Helper()
	other, err := link.OpenAt(netnstest.New(t).Path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	bridge, err := c.EnsureBridge("br", nil, 1500)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := c.AddPair(link.Pair{Name: fmt.Sprint("p", i), Peer: fmt.Sprint("e", i), MTU: 1500, Bridge: bridge.Index, Other: other}); err != nil {
			t.Fatal(err)
		}
	}
}

// removeAll removes p0 … pn-1 at once.
func removeAll(t testing.TB, c *link.Conn, n int) {
	t.Helper()
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { errs[i] = c.Remove(fmt.Sprint("p", i)) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	netnstest.Run(t, func() {
		c, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const n = 20
		pairs(t, c, n+1)
		removeAll(t, c, n)
		for i := range n {
			if _, err := c.Get(fmt.Sprint("p", i)); !errors.Is(err, link.ErrNotFound) {
				t.Errorf("p%d is still there: %v", i, err)
			}
		}
		for _, name := range []string{fmt.Sprint("p", n), "br"} {
			if _, err := c.Get(name); err != nil {
				t.Errorf("%s was not to be removed: %v", name, err)
			}
		}
		if err := c.Remove("none"); err != nil {
			t.Errorf("what is not there: %v", err)
		}
	})
}

// BenchmarkRemove removes 50 interfaces at once.
func BenchmarkRemove(b *testing.B) {
	netnstest.Run(b, func() {
		c, err := link.Open()
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for b.Loop() {
			b.StopTimer()
			pairs(b, c, 50)
			b.StartTimer()
			removeAll(b, c, 50)
		}
	})
}
