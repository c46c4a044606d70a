package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/periplus/periplus/store"
)

// Run checks that the stores made by open behave as the contract says. open
// returns an empty store that it closes when the test ends.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Run("create once", func(t *testing.T) { createOnce(t, open(t)) })
	t.Run("compare and swap", func(t *testing.T) { compareAndSwap(t, open(t)) })
	t.Run("all or nothing", func(t *testing.T) { allOrNothing(t, open(t)) })
	t.Run("list in pages and in the past", func(t *testing.T) { list(t, open(t)) })
	t.Run("watch from a revision", func(t *testing.T) { watch(t, open(t)) })
	t.Run("compaction", func(t *testing.T) { compaction(t, open(t)) })
	t.Run("one of many writers wins", func(t *testing.T) { race(t, open(t)) })
}

func createOnce(t *testing.T, s store.Store) {
	ctx := t.Context()
	if _, err := s.Get(ctx, "/a"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("get of an absent key: %v, want ErrNotFound", err)
	}
	rev, err := s.Create(ctx, "/a", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, "/a", []byte("2")); !errors.Is(err, store.ErrExists) {
		t.Fatalf("second create: %v, want ErrExists", err)
	}
	e, err := s.Get(ctx, "/a")
	if err != nil || string(e.Value) != "1" || e.Create != rev || e.Mod != rev {
		t.Fatalf("got %+v, %v; want value 1 at revision %d", e, err, rev)
	}
}

func compareAndSwap(t *testing.T, s store.Store) {
	ctx := t.Context()
	r1 := must(s.Create(ctx, "/a", []byte("1")))(t)
	r2 := must(s.Update(ctx, "/a", []byte("2"), r1))(t)
	if r2 <= r1 {
		t.Fatalf("revision went from %d to %d", r1, r2)
	}
	var conflict *store.ConflictError
	if _, err := s.Update(ctx, "/a", []byte("3"), r1); !errors.As(err, &conflict) {
		t.Fatalf("stale update: %v, want a ConflictError", err)
	}
	if c := conflict.Current; string(c.Value) != "2" || c.Mod != r2 || c.Create != r1 {
		t.Fatalf("conflict shows %+v, want value 2 of revision %d", c, r2)
	}
	if _, err := s.Delete(ctx, "/a", r1); !errors.As(err, &conflict) {
		t.Fatalf("stale delete: %v, want a ConflictError", err)
	}
	must(s.Delete(ctx, "/a", r2))(t)
	if _, err := s.Update(ctx, "/a", nil, r2); !errors.As(err, &conflict) || conflict.Current.Mod != 0 {
		t.Fatalf("update of a deleted key: %v, want a ConflictError with revision 0", err)
	}
}

func allOrNothing(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r1 := must(s.Create(ctx, "/p/a", []byte("1")))(t)
	must(s.Create(ctx, "/p/c", []byte("1")))(t)
	r3 := must(s.Commit(ctx,
		store.Op{Key: "/p/a", Value: []byte("2"), Mod: r1}, store.Op{Key: "/p/b", Value: []byte("1")},
		store.Op{Key: "/q", Value: []byte("1")}, store.Op{Key: "/p/c", Mod: store.Any}, store.Op{Key: "/p/d", Mod: store.Any}))(t)
	for _, want := range []store.Entry{{Key: "/p/a", Value: []byte("2"), Create: r1, Mod: r3}, {Key: "/p/b", Value: []byte("1"), Create: r3, Mod: r3}} {
		if e, err := s.Get(ctx, want.Key); err != nil || fmt.Sprint(e) != fmt.Sprint(want) {
			t.Errorf("got %v, %v; want %v", e, err, want)
		}
	}
	if _, err := s.Get(ctx, "/p/c"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was removed with the rest: %v", err)
	}
	var conflict *store.ConflictError
	_, err := s.Commit(ctx, store.Op{Key: "/p/a", Value: []byte("3"), Mod: r3}, store.Op{Key: "/p/c", Value: []byte("3"), Mod: r1}, store.Op{Key: "/p/b", Mod: r1}, store.Op{Key: "/new", Value: []byte("3")})
	if !errors.As(err, &conflict) || conflict.Current.Key != "/p/c" || conflict.Current.Mod != 0 {
		t.Errorf("one key of four is gone: %v", err)
	}
	_, err = s.Commit(ctx, store.Op{Key: "/new", Value: []byte("3")}, store.Op{Key: "/p/b", Value: []byte("3")})
	if !errors.As(err, &conflict) || conflict.Current.Key != "/p/b" || string(conflict.Current.Value) != "1" || conflict.Current.Mod != r3 {
		t.Errorf("one key of two exists: %v", err)
	}
	if _, err := s.Get(ctx, "/new"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("half of a refused transaction is there: %v", err)
	}
	// All that one transaction changes is told at once.
	var got []string
	err = s.Watch(ctx, "/p/", r1, func(events []store.Event, rev int64) {
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s@%d", e.Key, rev-r1))
			if e.Key == "/p/b" && len(events) != 3 {
				t.Errorf("%d changes at once, want 3: %v", len(events), events)
			}
		}
		if rev >= r3 {
			cancel()
		}
	})
	slices.Sort(got)
	if want := []string{"/p/a@2", "/p/b@2", "/p/c@1", "/p/c@2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("seen %v, %v; want %v", got, err, want)
	}
}

func list(t *testing.T, s store.Store) {
	ctx := t.Context()
	for i := range 5 {
		must(s.Create(ctx, fmt.Sprintf("/p/%d", i), []byte{byte('0' + i)}))(t)
	}
	must(s.Create(ctx, "/q/0", nil))(t)
	page, err := s.List(ctx, "/p/", store.ListOptions{Limit: 2})
	if err != nil || len(page.Entries) != 2 || page.Remaining != 3 || page.Entries[1].Key != "/p/1" {
		t.Fatalf("first page %+v, %v", page, err)
	}
	must(s.Delete(ctx, "/p/4", page.Revision-1))(t)
	rest, err := s.List(ctx, "/p/", store.ListOptions{Start: "/p/1\x00", Revision: page.Revision})
	if err != nil || len(rest.Entries) != 3 || rest.Entries[2].Key != "/p/4" || rest.Revision != page.Revision {
		t.Fatalf("rest at revision %d: %+v, %v", page.Revision, rest, err)
	}
	now, err := s.List(ctx, "/p/", store.ListOptions{})
	if err != nil || len(now.Entries) != 4 {
		t.Fatalf("now %+v, %v", now, err)
	}
}

func watch(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r1 := must(s.Create(ctx, "/p/a", []byte("1")))(t)
	r2 := must(s.Update(ctx, "/p/a", []byte("2"), r1))(t)
	var got []string
	done := make(chan error, 1)
	go func() {
		done <- s.Watch(ctx, "/p/", r1, func(events []store.Event, _ int64) {
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s=%s deleted=%v create=%v mod=%v", e.Key, e.Value, e.Deleted, e.Create-r1, e.Mod-r1))
				if e.Key == "/p/end" {
					cancel()
				}
			}
		})
	}()
	must(s.Create(ctx, "/other", nil))(t)
	must(s.Delete(ctx, "/p/a", r2))(t)
	must(s.Create(ctx, "/p/end", []byte("e")))(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/p/a=2 deleted=false create=0 mod=1",
		"/p/a= deleted=true create=" + fmt.Sprint(-r1) + " mod=3",
		"/p/end=e deleted=false create=4 mod=4",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func compaction(t *testing.T, s store.Store) {
	ctx := t.Context()
	r := must(s.Create(ctx, "/a", []byte("1")))(t)
	first := r
	for range 3 {
		r = must(s.Update(ctx, "/a", []byte("2"), r))(t)
	}
	if err := s.Compact(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := s.Watch(ctx, "/", first, func([]store.Event, int64) {}); !errors.Is(err, store.ErrCompacted) {
		t.Fatalf("watch from a compacted revision: %v, want ErrCompacted", err)
	}
	if _, err := s.List(ctx, "/", store.ListOptions{Revision: first}); !errors.Is(err, store.ErrCompacted) {
		t.Fatalf("list at a compacted revision: %v, want ErrCompacted", err)
	}
}

func race(t *testing.T, s store.Store) {
	ctx := t.Context()
	rev := must(s.Create(ctx, "/n", []byte("0")))(t)
	var wins sync.Map
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			if _, err := s.Update(ctx, "/n", []byte{byte('a' + i)}, rev); err == nil {
				wins.Store(i, true)
			}
		})
	}
	writers.Wait()
	n := 0
	wins.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Fatalf("%d writers won, want 1", n)
	}
}

func must(rev int64, err error) func(*testing.T) int64 {
	return func(t *testing.T) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
}
