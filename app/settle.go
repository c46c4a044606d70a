package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/residency"
)

// settleAfter is when a process that is ready has done what only starting needs:
// caches are filled, the first objects are made.
const settleAfter = 5 * time.Second

// settleStage gives back, once, the memory that only starting needed: half of the
// program's pages.
func settleStage(log *slog.Logger, after ...string) stage {
	return stage{name: "settled", after: after, run: func(ctx context.Context, _ func()) error {
		select {
		case <-time.After(settleAfter):
		case <-ctx.Done():
			return nil
		}
		if _, err := residency.Release(); err != nil {
			log.Debug("memory could not be given back", base.KeyError, err)
		}
		<-ctx.Done()
		return nil
	}}
}
