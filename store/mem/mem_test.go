package mem_test

import (
	"testing"

	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/mem"
	"github.com/periplus/periplus/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		s := mem.New()
		t.Cleanup(func() { s.Close() })
		return s
	})
}
