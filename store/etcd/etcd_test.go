package etcd_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/etcd"
	"github.com/periplus/periplus/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := etcd.Start(t.Context(), etcd.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// TestSpace: a database that has reached its quota gives room back by itself, as long
// as it is history that fills it.
func TestSpace(t *testing.T) {
	t.Parallel()
	const quota = 4 << 20
	s, err := etcd.Start(t.Context(), etcd.Config{Dir: t.TempDir(), Quota: quota, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 64<<10) }
	var mod int64
	for i := range 3 * quota / len(value(0)) {
		if mod == 0 {
			mod, err = s.Create(t.Context(), "/one", value(i))
		} else {
			mod, err = s.Update(t.Context(), "/one", value(i), mod)
		}
		if err != nil {
			t.Fatalf("write %d of the same key: %v", i, err)
		}
		s.Flush()
	}
	// Now what is stored itself is too much.
	mods := map[string]int64{}
	for i := range 2 * quota / len(value(0)) {
		key := fmt.Sprintf("/many/%d", i)
		if mods[key], err = s.Create(t.Context(), key, value(i)); err != nil {
			break
		}
		s.Flush()
	}
	if err == nil || !strings.Contains(err.Error(), "the database is full: delete what is not needed") {
		t.Fatalf("more than the quota: %v", err)
	}
	list, err := s.List(t.Context(), "/many/", store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.Entries[:len(list.Entries)/2] {
		if _, err := s.Delete(t.Context(), e.Key, e.Mod); err != nil {
			t.Fatalf("delete from the full database: %v", err)
		}
	}
	s.EndPause()
	if _, err := s.Create(t.Context(), "/again", value(1)); err != nil {
		t.Fatalf("write after half was deleted: %v", err)
	}
}
