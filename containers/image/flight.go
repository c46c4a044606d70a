package image

import (
	"context"
	"sync"
)

// flights makes calls for the same key at the same time one. The work ends
// early only when everybody who waits for it has gone away.
type flights struct {
	mu  sync.Mutex
	all map[string]*flight
}

type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int // guarded by flights.mu
	image   *Image
	err     error
}

func (f *flights) do(ctx context.Context, key string, work func(context.Context) (*Image, error)) (*Image, error) {
	f.mu.Lock()
	if f.all == nil {
		f.all = map[string]*flight{}
	}
	c := f.all[key]
	if c == nil {
		shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
		c = &flight{done: make(chan struct{}), cancel: cancel}
		f.all[key] = c
		go func() {
			c.image, c.err = work(shared)
			f.mu.Lock()
			if f.all[key] == c {
				delete(f.all, key)
			}
			f.mu.Unlock()
			cancel()
			close(c.done)
		}()
	}
	c.waiters++
	f.mu.Unlock()

	select {
	case <-c.done:
		return c.image, c.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	c.waiters--
	last := c.waiters == 0
	if last && f.all[key] == c {
		delete(f.all, key) // who comes now begins anew
	}
	f.mu.Unlock()
	if last {
		c.cancel()
		<-c.done // leaves nothing behind
	}
	return nil, ctx.Err()
}

// keyedLock is one lock a key.
type keyedLock struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed on unlock
}

// lock waits for the key's lock and returns how to unlock it.
func (k *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		k.mu.Lock()
		wait := k.held[key]
		if wait == nil {
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			released := make(chan struct{})
			k.held[key] = released
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.held, key)
				k.mu.Unlock()
				close(released)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
