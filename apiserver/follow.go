package apiserver

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/rest"
)

// A Follower is told of every stored object of every kind. Objects are the
// server's own: they must not be modified.
type Follower interface {
	// Resources names all kinds, in their stored versions.
	Resources(list []rest.Listing)
	// Upsert says that an object exists in this state, Gone that it does not any more.
	// Calls for one resource come in order and one at a time.
	Upsert(l rest.Listing, obj metav1.Object)
	Gone(l rest.Listing, obj metav1.Object)
	// Synced says that everything that existed at the start has been told.
	Synced()
}

// Follow tells f of all objects and their changes until ctx ends, straight from
// the watch caches. Kinds come and go while it runs.
func (s *Server) Follow(ctx context.Context, f Follower) error {
	following := map[*cacher.Cache]context.CancelFunc{}
	var running sync.WaitGroup
	defer running.Wait()
	defer func() {
		for _, stop := range following {
			stop()
		}
	}()
	for first := true; ; first = false {
		kinds, changed := s.rest.Stored()
		list := make([]rest.Listing, len(kinds))
		there := map[*cacher.Cache]bool{}
		for i, k := range kinds {
			list[i] = k.Listing
			there[k.Objects.Cache] = true
		}
		for cache, stop := range following {
			if !there[cache] {
				stop()
				delete(following, cache)
			}
		}
		f.Resources(list)
		for _, k := range kinds {
			cache, l := k.Objects.Cache, k.Listing
			if following[cache] != nil {
				continue
			}
			own, stop := context.WithCancel(ctx)
			following[cache] = stop
			snapshot, watch := cache.SnapshotAndWatch()
			snapshot.Each("", "", func(o *cacher.Object) bool {
				f.Upsert(l, o.Meta)
				return true
			})
			running.Go(func() { follow(own, cache, watch, l, f) })
		}
		if first {
			f.Synced()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func follow(ctx context.Context, cache *cacher.Cache, watch *cacher.Watch, l rest.Listing, f Follower) {
	buf := make([]cacher.Event, 0, 16)
	for {
		events, err := watch.Next(ctx, buf[:0])
		if ctx.Err() != nil || errors.Is(err, cacher.ErrGone) {
			return
		}
		if err != nil {
			// The log of changes was lost: tell the present again.
			var snapshot cacher.Snapshot
			snapshot, watch = cache.SnapshotAndWatch()
			snapshot.Each("", "", func(o *cacher.Object) bool {
				f.Upsert(l, o.Meta)
				return true
			})
			continue
		}
		for i := range events {
			if events[i].Deleted {
				f.Gone(l, events[i].Object.Meta)
			} else {
				f.Upsert(l, events[i].Object.Meta)
			}
		}
	}
}
