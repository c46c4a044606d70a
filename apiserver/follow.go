package apiserver

import (
	"context"
	"errors"
	"sync"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/client/objects"
)

var _ objects.Source = (*Server)(nil)

// Follow implements [objects.Source]: it tells sink of all objects and their changes until ctx ends, straight from
// the watch caches. Kinds come and go while it runs.
func (s *Server) Follow(ctx context.Context, sink objects.Sink) error {
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
		list := make([]objects.Resource, len(kinds))
		there := map[*cacher.Cache]bool{}
		for i, k := range kinds {
			list[i] = objects.Resource{GVR: k.GVR, Kind: k.GVK.Kind, Namespaced: k.Resource.Namespaced}
			there[k.Objects.Cache] = true
		}
		for cache, stop := range following {
			if !there[cache] {
				stop()
				delete(following, cache)
			}
		}
		sink.Resources(list)
		for i, k := range kinds {
			cache, r := k.Objects.Cache, list[i]
			if following[cache] != nil {
				continue
			}
			own, stop := context.WithCancel(ctx)
			following[cache] = stop
			snapshot, watch := cache.SnapshotAndWatch()
			snapshot.Each("", "", func(o *cacher.Object) bool {
				sink.Upsert(r, o.Meta)
				return true
			})
			running.Go(func() { follow(own, cache, watch, r, sink) })
		}
		if first {
			sink.Synced()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func follow(ctx context.Context, cache *cacher.Cache, watch *cacher.Watch, r objects.Resource, sink objects.Sink) {
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
				sink.Upsert(r, o.Meta)
				return true
			})
			continue
		}
		for i := range events {
			if events[i].Deleted {
				sink.Gone(r, events[i].Object.Meta)
			} else {
				sink.Upsert(r, events[i].Object.Meta)
			}
		}
	}
}
