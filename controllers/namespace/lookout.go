package namespace

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
)

// lookouts watch what was left in namespaces: objects that finalizers hold. One
// wakes the loop when an object goes or its finalizers change, and ends with that;
// the pass that follows posts new ones.
type lookouts struct {
	client metadata.Interface
	wake   func(namespace string)

	mu      sync.Mutex // guards what follows
	posted  map[string]context.CancelFunc
	ended   bool
	running sync.WaitGroup
}

// remains is what one pass left of one kind.
type remains struct {
	gvr        schema.GroupVersionResource
	revision   string
	finalizers map[string][]string // by name
}

// post replaces the lookout of a namespace. It reports whether every kind is
// watched from the moment it was listed.
func (l *lookouts) post(ctx context.Context, namespace string, kinds []remains) bool {
	ctx, cancel := context.WithCancel(ctx)
	var watches []watch.Interface
	stop := func() {
		cancel()
		for _, w := range watches {
			w.Stop()
		}
	}
	for i := range kinds {
		w, err := l.client.Resource(kinds[i].gvr).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: kinds[i].revision})
		if err != nil {
			stop()
			return false
		}
		watches = append(watches, w)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.posted[namespace]; old != nil {
		old()
	}
	delete(l.posted, namespace)
	if l.ended {
		stop()
		return false
	}
	if len(kinds) == 0 {
		cancel()
		return true
	}
	l.posted[namespace] = cancel
	for i := range kinds {
		l.running.Go(func() {
			defer watches[i].Stop()
			if kinds[i].changed(ctx, watches[i]) && ctx.Err() == nil {
				cancel()
				l.wake(namespace)
			}
		})
	}
	return true
}

// changed returns true when something went or changed its finalizers, or when
// the watch ended; false when ctx did.
func (k *remains) changed(ctx context.Context, w watch.Interface) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case e, ok := <-w.ResultChan():
			if !ok {
				return true
			}
			switch o, isMeta := e.Object.(*metav1.PartialObjectMetadata); {
			case e.Type == watch.Bookmark:
			case e.Type != watch.Modified, !isMeta, !slices.Equal(o.Finalizers, k.finalizers[o.Name]):
				return true
			}
		}
	}
}

// recall ends the lookout of a namespace.
func (l *lookouts) recall(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.posted[namespace]; cancel != nil {
		cancel()
		delete(l.posted, namespace)
	}
}

// end recalls all and returns when they have ended.
func (l *lookouts) end() {
	l.mu.Lock()
	l.ended = true
	for _, cancel := range l.posted {
		cancel()
	}
	l.mu.Unlock()
	l.running.Wait()
}
