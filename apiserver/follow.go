package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
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
// the watch caches.
func (s *Server) Follow(ctx context.Context, f Follower) error {
	var list []rest.Listing
	for _, l := range s.rest.Listings() {
		if l.GVR == l.Resource.GVR && s.rest.Objects(l.GVR).Cache != nil {
			list = append(list, l)
		}
	}
	f.Resources(list)
	var components []base.Component
	for _, l := range list {
		cache := s.rest.Objects(l.GVR).Cache
		snapshot, watch := cache.SnapshotAndWatch()
		snapshot.Each("", "", func(o *cacher.Object) bool {
			f.Upsert(l, o.Meta)
			return true
		})
		components = append(components, base.Component{Name: "follow " + l.GVR.Resource, Run: func(ctx context.Context) error {
			return follow(ctx, cache, watch, l, f)
		}})
	}
	f.Synced()
	return base.RunAll(ctx, components...)
}

func follow(ctx context.Context, cache *cacher.Cache, watch *cacher.Watch, l rest.Listing, f Follower) error {
	buf := make([]cacher.Event, 0, 16)
	for {
		events, err := watch.Next(ctx, buf[:0])
		if ctx.Err() != nil {
			return nil
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
