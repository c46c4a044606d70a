package checkpoint

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// stream is a watch that keeps what passes.
type stream struct {
	inner  watch.Interface
	events chan watch.Event
	stop   func()
	ended  chan struct{}
}

var _ watch.Interface = (*stream)(nil)

// follow delivers first, then what inner does.
func (r *Remembered) follow(inner watch.Interface, first []watch.Event) watch.Interface {
	s := &stream{inner: inner, events: make(chan watch.Event), ended: make(chan struct{})}
	s.stop = sync.OnceFunc(func() {
		close(s.ended)
		inner.Stop()
	})
	go func() {
		defer close(s.events)
		for _, e := range first {
			if !s.send(e) {
				return
			}
		}
		for e := range inner.ResultChan() {
			r.record(e)
			if !s.send(e) {
				return
			}
		}
	}()
	return s
}

func (s *stream) send(e watch.Event) bool {
	select {
	case s.events <- e:
		return true
	case <-s.ended:
		return false
	}
}

func (r *Remembered) record(e watch.Event) {
	obj, ok := e.Object.(Object)
	if !ok {
		return
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		r.store.put(r.list.Bucket, keyOf(obj), obj)
	case watch.Deleted:
		r.store.put(r.list.Bucket, keyOf(obj), nil)
	case watch.Bookmark, watch.Error:
	}
}

// Stop implements watch.Interface.
func (s *stream) Stop() { s.stop() }

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }
