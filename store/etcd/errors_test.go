package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/periplus/periplus/linux/porttest"
	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/etcd"
)

// TestErrors: what etcd says is put into the words of package store.
func TestErrors(t *testing.T) {
	t.Parallel()
	s, err := etcd.Start(t.Context(), etcd.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Create(t.Context(), "/large", make([]byte, 2<<20)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("2 MiB: %v, want ErrTooLarge", err)
	}
	if _, err := s.Get(t.Context(), "/large"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was too large: %v, want ErrNotFound", err)
	}

	gone, err := etcd.Dial(clientv3.Config{Endpoints: []string{porttest.Closed(t)}, DialTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = gone.Create(ctx, "/k", []byte("v"))
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nobody there: %v, want ErrUnavailable, or the end of the time", err)
	}
}
