package rest

import (
	"context"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/client"
)

// Source returns the server's objects for informers in the same process.
func (s *Server) Source() client.Source { return source{s} }

type source struct{ server *Server }

func (s source) Kinds() map[reflect.Type]schema.GroupVersionResource {
	s.server.mu.RLock()
	defer s.server.mu.RUnlock()
	out := make(map[reflect.Type]schema.GroupVersionResource, len(s.server.objects))
	for gvr, o := range s.server.objects {
		if o.Cache != nil && !o.Resource.KeepItemType { // custom resources have no type of their own
			out[reflect.TypeOf(o.Resource.New())] = gvr
		}
	}
	return out
}

func (s source) List(ctx context.Context, gvr schema.GroupVersionResource, keep func(runtime.Object) bool) ([]runtime.Object, string, error) {
	o := s.server.Objects(gvr)
	if o == nil || o.Cache == nil {
		return nil, "", noResource(gvr.GroupResource())
	}
	if err := o.set.Sync(ctx); err != nil {
		return nil, "", storeError(err)
	}
	rev := o.set.Rev()
	snapshot := o.Cache.Snapshot()
	items := make([]runtime.Object, 0, snapshot.Len())
	snapshot.Each("", "", func(obj *cacher.Object) bool {
		if keep == nil || keep(obj.Obj) {
			items = append(items, obj.Obj)
		}
		return true
	})
	return items, strconv.FormatInt(max(rev, snapshot.Rev), 10), nil
}

func (s source) Watch(ctx context.Context, gvr schema.GroupVersionResource, revision string, keep func(runtime.Object) bool) (watch.Interface, error) {
	o := s.server.Objects(gvr)
	if o == nil || o.Cache == nil {
		return nil, noResource(gvr.GroupResource())
	}
	rev, err := parseRevision(revision)
	if err != nil {
		return nil, err
	}
	w, err := o.Cache.Watch(rev)
	if err != nil {
		return nil, resourceExpired("too old resource version: " + revision)
	}
	ctx, cancel := context.WithCancel(ctx)
	out := &sharedWatch{results: make(chan watch.Event), cancel: cancel}
	go out.run(ctx, w, keep)
	return out, nil
}

// sharedWatch delivers the cache's own objects.
type sharedWatch struct {
	results chan watch.Event
	cancel  context.CancelFunc
}

func (w *sharedWatch) ResultChan() <-chan watch.Event { return w.results }
func (w *sharedWatch) Stop()                          { w.cancel() }

func (w *sharedWatch) run(ctx context.Context, in *cacher.Watch, keep func(runtime.Object) bool) {
	defer close(w.results)
	defer w.cancel()
	buf := make([]cacher.Event, 0, 16)
	for {
		events, err := in.Next(ctx, buf[:0])
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.send(ctx, watch.Event{Type: watch.Error, Object: statusOf(apierrors.NewResourceExpired(err.Error()))})
			return
		}
		for i := range events {
			if out, ok := shared(&events[i], keep); ok && !w.send(ctx, out) {
				return
			}
		}
	}
}

func shared(e *cacher.Event, keep func(runtime.Object) bool) (watch.Event, bool) {
	now := !e.Deleted && (keep == nil || keep(e.Object.Obj))
	before := e.Prev != nil && (keep == nil || keep(e.Prev.Obj))
	switch {
	case now && before:
		return watch.Event{Type: watch.Modified, Object: e.Object.Obj}, true
	case now:
		return watch.Event{Type: watch.Added, Object: e.Object.Obj}, true
	case before && e.Deleted:
		return watch.Event{Type: watch.Deleted, Object: e.Object.Obj}, true
	case before:
		return watch.Event{Type: watch.Deleted, Object: e.Left().Obj}, true
	}
	return watch.Event{}, false
}

func (w *sharedWatch) send(ctx context.Context, e watch.Event) bool {
	select {
	case w.results <- e:
		return true
	case <-ctx.Done():
		return false
	}
}
