package containers

import (
	"context"
	"sync"
	"time"
)

// monitorPatience is how long a call waits for a monitor that is being replaced.
const monitorPatience = 10 * time.Second

// A gate is open while there is a monitor to talk to.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while open; nil before the first wait
	isOpen bool
}

func (g *gate) channelLocked() chan struct{} {
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
	return g.opened
}

func (g *gate) up() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen {
		g.isOpen = true
		close(g.channelLocked())
	}
}

func (g *gate) down() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		g.isOpen, g.opened = false, nil
	}
}

// wait returns when the gate is open, or after some time all the same: the call
// then fails with the true reason.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	opened := g.channelLocked()
	g.mu.Unlock()
	select {
	case <-opened:
		return
	default:
	}
	timer := time.NewTimer(monitorPatience)
	defer timer.Stop()
	select {
	case <-opened:
	case <-timer.C:
	case <-ctx.Done():
	}
}
