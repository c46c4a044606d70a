package monitor

import (
	"net"
	"sync"
)

// A watcher is told of every container and of every end.
type watcher struct {
	mu     sync.Mutex
	queue  []Reply
	wakeup chan struct{} // buffered: something was queued
}

func (w *watcher) add(items ...Reply) {
	w.mu.Lock()
	w.queue = append(w.queue, items...)
	w.mu.Unlock()
	select {
	case w.wakeup <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	items := w.queue
	w.queue = nil
	return items
}

// serveWatch sends the present state, a mark, and then every start and end as it
// happens. The mark waits for the containers that are being started at the moment:
// a client that has been started again must not believe that they do not run, and
// start others in their place. The queue is bounded by the number of containers.
func (s *Server) serveWatch(conn *net.UnixConn) {
	w := &watcher{wakeup: make(chan struct{}, 1)}
	s.mu.Lock()
	for _, c := range s.containers {
		w.add(Reply{Container: c.state()})
	}
	var starting []chan struct{}
	for _, over := range s.starting {
		starting = append(starting, over)
	}
	s.watchers[w] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	gone := make(chan struct{})
	go func() {
		var b [1]byte
		_, _ = conn.Read(b[:]) // the client sends nothing: this ends when it goes
		close(gone)
	}()
	go func() {
		for _, over := range starting {
			<-over
		}
		w.add(Reply{Synced: true})
	}()
	for {
		for _, item := range w.take() {
			if reply(conn, item) != nil {
				return
			}
		}
		select {
		case <-w.wakeup:
		case <-gone:
			return
		case <-s.quit:
			return
		}
	}
}

// publish tells the watchers that a container has ended.
func (s *Server) publish(c *container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishLocked(c)
}

func (s *Server) publishLocked(c *container) {
	for w := range s.watchers {
		w.add(Reply{Container: c.state()})
	}
}
