package etcd_test

import (
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
