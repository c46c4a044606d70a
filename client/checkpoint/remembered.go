package checkpoint

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
)

// How long to wait before the API is asked again.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
)

// A List says what of a bucket is remembered together.
type List struct {
	// Bucket is where the objects are kept.
	Bucket string
	// Only is the key of the single object that is listed; empty: all of the bucket.
	Only string
	// New makes an empty object.
	New func() Object
}

func (l List) id() string {
	if l.Only == "" {
		return l.Bucket
	}
	return l.Bucket + " " + l.Only
}

// Remembered is a ListerWatcher that can answer from a Store.
type Remembered struct {
	store *Store
	list  List
	inner cache.ListerWatcherWithContext

	live chan struct{} // closed when the API was listed

	mu     sync.Mutex        // guards the rest
	kept   map[string]Object // what was handed out from the store; nil: nothing, or it is corrected
	listed []types.UID       // by the first list of the API
}

var _ cache.ListerWatcherWithContext = (*Remembered)(nil)

// Remember returns a ListerWatcher that keeps what inner says and repeats it in a later
// life until inner can be asked again.
func (s *Store) Remember(l List, inner cache.ListerWatcher) *Remembered {
	return &Remembered{store: s, list: l, inner: cache.ToListerWatcherWithContext(inner), live: make(chan struct{})}
}

// Forget drops the objects of a list.
func (s *Store) Forget(l List) {
	s.put(knownBucket, l.id(), nil)
	if l.Only != "" {
		s.put(l.Bucket, l.Only, nil)
		return
	}
	s.keep(l.Bucket, func(string) bool { return false })
}

// Live waits until the API has been listed and returns what was there then.
func (r *Remembered) Live(ctx context.Context) ([]types.UID, error) {
	select {
	case <-r.live:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.listed, nil
}

// IsWatchListSemanticsUnSupported tells reflectors to list and then watch: a list can
// be compared with what is kept.
func (r *Remembered) IsWatchListSemanticsUnSupported() bool { return true }

// List implements cache.ListerWatcher.
func (r *Remembered) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (r *Remembered) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext asks the API; if it has never answered in this life and does not now,
// what is kept is returned.
func (r *Remembered) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := r.inner.ListWithContext(ctx, o)
	if err == nil {
		if _, err := r.alive(list); err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.kept = nil
		r.mu.Unlock()
		return list, nil
	}
	select {
	case <-r.live:
		return nil, err
	default:
	}
	if refused(err) || ctx.Err() != nil {
		return nil, err
	}
	kept, ok := r.load()
	if !ok {
		return nil, err
	}
	r.store.log.Info("The server cannot be reached: going on with what was known", base.KeyName, r.list.id(), "objects", len(kept), base.KeyError, err)
	out := &client.ObjectList{ListMeta: metav1.ListMeta{ResourceVersion: "0"}, Items: make([]runtime.Object, 0, len(kept))}
	for _, obj := range kept {
		out.Items = append(out.Items, obj)
	}
	r.mu.Lock()
	r.kept = kept
	r.mu.Unlock()
	return out, nil
}

// load reads what is kept; false if the list never was complete.
func (r *Remembered) load() (map[string]Object, bool) {
	if r.store.get(knownBucket, r.list.id()) == nil {
		return nil, false
	}
	kept := map[string]Object{}
	err := r.store.each(r.list.Bucket, func(key string, value []byte) {
		if r.list.Only != "" && key != r.list.Only {
			return
		}
		if obj, err := decode(value, r.list.New()); err == nil {
			kept[key] = obj
		} else {
			r.store.log.Warn("A checkpoint cannot be read", base.KeyName, r.list.Bucket+" "+key, base.KeyError, err)
		}
	})
	return kept, err == nil
}

func decode(value []byte, into Object) (Object, error) {
	version, data := split(value)
	if err := into.Unmarshal(data); err != nil {
		return nil, err
	}
	into.SetResourceVersion(version)
	return into, nil
}

// alive keeps a list of the API and returns its objects by key.
func (r *Remembered) alive(list runtime.Object) (map[string]Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	now := make(map[string]Object, len(items))
	uids := make([]types.UID, 0, len(items))
	for _, item := range items {
		obj, ok := item.(Object)
		if !ok {
			return nil, fmt.Errorf("%T cannot be kept", item)
		}
		now[keyOf(obj)] = obj
		uids = append(uids, obj.GetUID())
	}
	kept := r.store.versions(r.list)
	for key := range kept {
		if now[key] == nil {
			r.store.put(r.list.Bucket, key, nil)
		}
	}
	for key, obj := range now {
		if version, ok := kept[key]; !ok || version != obj.GetResourceVersion() {
			r.store.put(r.list.Bucket, key, obj)
		}
	}
	r.store.put(knownBucket, r.list.id(), []byte{1})
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.live:
	default:
		r.listed = uids
		close(r.live)
		r.store.answered()
	}
	return now, nil
}

func keyOf(obj metav1.Object) string {
	if ns := obj.GetNamespace(); ns != "" {
		return ns + "/" + obj.GetName()
	}
	return obj.GetName()
}

// WatchWithContext watches the API and keeps what it says. After a list from the store
// it waits for the API, lists it, and begins with what differs.
func (r *Remembered) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	r.mu.Lock()
	kept := r.kept
	r.mu.Unlock()
	if kept == nil {
		w, err := r.inner.WatchWithContext(ctx, o)
		if err != nil {
			return nil, err
		}
		return r.follow(w, nil), nil
	}
	list, err := r.await(ctx)
	if err != nil {
		return nil, err
	}
	now, err := r.alive(list)
	if err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	o.ResourceVersion = m.GetResourceVersion()
	w, err := r.inner.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	bookmark := r.list.New()
	bookmark.SetResourceVersion(o.ResourceVersion)
	events := append(difference(kept, now), watch.Event{Type: watch.Bookmark, Object: bookmark})
	r.mu.Lock()
	r.kept = nil
	r.mu.Unlock()
	return r.follow(w, events), nil
}

// await lists the API as soon as it answers. Of all who wait one asks again and again;
// its success is the others' turn.
func (r *Remembered) await(ctx context.Context) (runtime.Object, error) {
	asking := false
	defer func() {
		if asking {
			<-r.store.asking
		}
	}()
	pause := firstPause
	for {
		reached := r.store.waiting()
		list, err := r.inner.ListWithContext(ctx, metav1.ListOptions{})
		if err == nil || refused(err) {
			return list, err
		}
		if asking {
			timer := time.NewTimer(pause)
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil, ctx.Err()
			case <-timer.C:
			case <-reached:
				timer.Stop()
			}
			pause = min(2*pause, lastPause)
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-reached:
		case r.store.asking <- struct{}{}:
			asking = true
		}
	}
}

// difference are the events that lead from one state to the other.
func difference(before, now map[string]Object) []watch.Event {
	var out []watch.Event
	for key, old := range before {
		obj := now[key]
		switch {
		case obj == nil:
			out = append(out, watch.Event{Type: watch.Deleted, Object: old})
		case obj.GetUID() != old.GetUID():
			out = append(out, watch.Event{Type: watch.Deleted, Object: old}, watch.Event{Type: watch.Added, Object: obj})
		case obj.GetResourceVersion() != old.GetResourceVersion():
			out = append(out, watch.Event{Type: watch.Modified, Object: obj})
		}
	}
	for key, obj := range now {
		if before[key] == nil {
			out = append(out, watch.Event{Type: watch.Added, Object: obj})
		}
	}
	return out
}
