package cacher

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/store"
)

// TestTwins: of several who try to write the same value at the same time one succeeds; he
// is told so whichever of them was first to announce it, and whoever gives up meanwhile.
func TestTwins(t *testing.T) {
	t.Parallel()
	const key = Root + "maps/a"
	announce := func(c *Cache, value string) *Pending { return c.Expect(key, []byte(value), &corev1.ConfigMap{}) }
	store := func(c *Cache, value string, rev int64) {
		c.apply([]store.Event{{Entry: store.Entry{Key: key, Value: []byte(value), Create: 1, Mod: rev}}}, rev)
	}
	told := func(p *Pending) int64 {
		select {
		case o := <-p.Done():
			return o.Rev
		default:
			return 0
		}
	}
	c := newCache(Root+"maps/", names{}, slog.New(slog.DiscardHandler), &kept{})
	one, two, other := announce(c, "x"), announce(c, "x"), announce(c, "y")
	store(c, "x", 5)
	c.Forget(key, one) // it lost, but was announced first
	if got := told(two); got != 5 {
		t.Errorf("the one who succeeded was told %d", got)
	}
	if got := told(other); got != 0 {
		t.Errorf("somebody else was told %d", got)
	}
	three := announce(c, "x")
	c.Forget(key, other)
	store(c, "x", 7)
	if got := told(three); got != 7 {
		t.Errorf("a later one was told %d", got)
	}
	if len(c.pending) != 0 {
		t.Errorf("%d are left", len(c.pending))
	}
}
