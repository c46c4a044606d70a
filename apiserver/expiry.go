package apiserver

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/base"
)

const (
	// expiryPause is the least time between two rounds of expiry: events go in
	// groups, so that a busy cluster does not write for each of them.
	expiryPause = 5 * time.Minute
	// expiryWidth is how many are deleted at a time; the store commits them together.
	expiryWidth = 32
)

// expireEvents deletes events some time after they were last seen, until ctx ends.
// It sleeps until the oldest is due.
func (s *Server) expireEvents(ctx context.Context) error {
	for {
		timer := time.NewTimer(max(expiryPause, s.expireRound(ctx)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// expireRound deletes what is due and returns when the next event will be.
func (s *Server) expireRound(ctx context.Context) time.Duration {
	events := s.rest.Objects(corev1.SchemeGroupVersion.WithResource("events"))
	now := time.Now()
	next := s.config.EventTTL
	var due []*cacher.Object
	events.Cache.Snapshot().Each("", "", func(o *cacher.Object) bool {
		if left := lastSeen(o.Obj.(*corev1.Event), now).Add(s.config.EventTTL).Sub(now); left > 0 {
			next = min(next, left)
		} else {
			due = append(due, o)
		}
		return true
	})
	group := errgroup.Group{}
	group.SetLimit(expiryWidth)
	for _, o := range due {
		group.Go(func() error { return events.Expire(ctx, o) })
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		s.config.Log.Warn("old events could not be deleted", base.KeyError, err)
	}
	return next
}

// lastSeen is when an event happened for the last time, as far as it says; times
// that are still to come are not believed.
func lastSeen(e *corev1.Event, now time.Time) time.Time {
	last := e.CreationTimestamp.Time
	times := []time.Time{e.LastTimestamp.Time, e.EventTime.Time}
	if e.Series != nil {
		times = append(times, e.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.After(last) && !t.After(now) {
			last = t
		}
	}
	return last
}
