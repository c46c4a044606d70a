package store_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/periplus/periplus/store"
)

// slow is a store whose writes take as long as the test wants, and end with an error.
type slow struct {
	store.Store
	takes time.Duration
	err   error
}

func (s *slow) Create(ctx context.Context, _ string, _ []byte) (int64, error) {
	select {
	case <-time.After(s.takes):
		return 7, s.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// TestPulse: writes outlive the one who wanted them but not his time, and silence is
// told from impatience.
func TestPulse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{takes: 3 * time.Second}
		p := store.NewPulse(s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		time.AfterFunc(time.Second, cancel)
		if rev, err := p.Create(ctx, "k", nil); rev != 7 || err != nil {
			t.Errorf("the client goes away: %d, %v; the write is to be finished", rev, err)
		}
		if _, err := p.Create(ctx, "k", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the client has gone: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Create(short, "k", nil); !errors.Is(err, context.DeadlineExceeded) || p.Silent() != nil {
			t.Errorf("%v, silent %v: a tenth of a second says nothing", err, p.Silent())
		}
		long, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := p.Create(long, "k", nil); err == nil || p.Silent() == nil {
			t.Errorf("%v, silent %v: two seconds say something", err, p.Silent())
		}
		since := p.Silent().Since
		s.takes, s.err = time.Millisecond, store.ErrUnavailable
		if _, err := p.Create(t.Context(), "k", nil); err == nil || p.Silent() == nil || p.Silent().Since != since {
			t.Errorf("%v, silent %v, want since %v", err, p.Silent(), since)
		}
		s.err = store.ErrExists // an answer
		if _, err := p.Create(t.Context(), "k", nil); err == nil || p.Silent() != nil {
			t.Errorf("%v, silent %v", err, p.Silent())
		}
	})
}
