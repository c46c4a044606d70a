package containers

import (
	"context"
	"errors"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// maxQueued is how far a subscriber may fall behind before its stream breaks.
const maxQueued = 8192

// ErrTooSlow is returned by Events when the subscriber fell too far behind; it
// lists and subscribes again.
var ErrTooSlow = errors.New("event stream: subscriber is too slow")

// A broadcaster hands events to subscribers in order, never waiting for one.
type broadcaster struct {
	mu          sync.Mutex
	subscribers map[*subscriber]bool
}

type subscriber struct {
	wakeup  chan struct{} // buffered: something was queued
	mu      sync.Mutex
	queue   []*runtimeapi.ContainerEventResponse
	tooSlow bool
}

func (b *broadcaster) send(e *runtimeapi.ContainerEventResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subscribers {
		s.mu.Lock()
		if len(s.queue) < maxQueued {
			s.queue = append(s.queue, e)
		} else {
			s.tooSlow = true
		}
		s.mu.Unlock()
		select {
		case s.wakeup <- struct{}{}:
		default:
		}
	}
}

func (b *broadcaster) any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subscribers) > 0
}

func (b *broadcaster) subscribe() (*subscriber, func()) {
	s := &subscriber{wakeup: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscribers == nil {
		b.subscribers = map[*subscriber]bool{}
	}
	b.subscribers[s] = true
	return s, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers, s)
	}
}

func (s *subscriber) take() ([]*runtimeapi.ContainerEventResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tooSlow {
		return nil, ErrTooSlow
	}
	q := s.queue
	s.queue = nil
	return q, nil
}

// Events implements cri.Runtime. Each event carries the state of its pod when
// it was sent.
func (r *Runtime) Events(ctx context.Context, started func(), handle func(*runtimeapi.ContainerEventResponse)) error {
	if err := r.wait(ctx); err != nil {
		return nil // ctx has ended
	}
	s, unsubscribe := r.events.subscribe()
	defer unsubscribe()
	if started != nil {
		started()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wakeup:
		}
		events, err := s.take()
		if err != nil {
			return err
		}
		for _, e := range events {
			handle(e)
		}
	}
}

// event describes what happened to a container, or to a sandbox, whose ID then
// stands in both places.
func (r *Runtime) event(sandboxID, id string, kind runtimeapi.ContainerEventType) *runtimeapi.ContainerEventResponse {
	e := &runtimeapi.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	r.mu.Lock()
	s := r.sandboxes[sandboxID]
	r.mu.Unlock()
	if s != nil {
		e.PodSandboxStatus = s.status()
		e.ContainersStatuses = r.statusesOf(sandboxID)
	}
	return e
}

func (r *Runtime) emit(sandboxID, id string, kind runtimeapi.ContainerEventType) {
	if r.events.any() {
		r.events.send(r.event(sandboxID, id, kind))
	}
}
