package scheduler

import (
	"context"
	"sync"
)

// side owns the goroutines that plug-ins start with Framework.Go.
type side struct {
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func newSide() *side {
	ctx, stop := context.WithCancel(context.Background())
	return &side{ctx: ctx, stop: stop}
}

func (s *side) start(work func(context.Context)) {
	s.wg.Go(func() { work(s.ctx) })
}

// close ends all work and waits for it. It is called by the goroutine that starts work.
func (s *side) close() {
	s.stop()
	s.wg.Wait()
}
