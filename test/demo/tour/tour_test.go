package tour_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/periplus/periplus/test/demo/tour"
)

// limit is generous: the machine may be busy with other tests.
const limit = 8 * time.Minute

// TestTour makes the whole tour with the built binary.
func TestTour(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes machines of namespaces")
	}
	peri := os.Getenv("PERI")
	if peri == "" {
		peri = filepath.Join("..", "..", "..", "bin", "peri")
	}
	if _, err := os.Stat(peri); err != nil {
		t.Skipf("needs the binary: make build (%v)", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := tour.Run(ctx, tour.Config{Peri: peri, Out: t.Output()}); err != nil {
		t.Error(err)
	}
}
