package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/volume"
)

// A subject is what is watched for pods: an object, or the objects that belong together.
type subject struct {
	stop   context.CancelFunc
	synced chan struct{} // closed when the first list has arrived
	users  int           // references of pods; guarded by Source.mu
}

func (s *Source) newSubject() (context.Context, subject) {
	ctx, cancel := context.WithCancel(s.ctx)
	return ctx, subject{stop: cancel, synced: make(chan struct{})}
}

// wait waits for the first answer of the API server.
func (j *subject) wait(ctx context.Context, kind string) error {
	timeout := time.NewTimer(firstAnswer)
	defer timeout.Stop()
	select {
	case <-j.synced:
		return nil
	case <-timeout.C:
		return fmt.Errorf("failed to sync %s cache: timed out waiting for the condition", kind)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watched is one object that is watched by name. It is the store of its own
// reflector: a store of at most one object.
type watched struct {
	subject
	ref    volume.Ref
	notify func(volume.Ref)

	mu   sync.Mutex // guards obj and done
	obj  any        // nil: absent
	done bool       // synced is closed
}

var _ cache.ReflectorStore = (*watched)(nil)

// watch begins to watch the object; Source.mu is held.
func (s *Source) watch(ref volume.Ref) *watched {
	ctx, j := s.newSubject()
	w := &watched{subject: j, ref: ref, notify: s.notify}
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name).String()

	var lw cache.ListWatch
	var example runtime.Object
	core := s.config.Client.CoreV1()
	if ref.Kind == volume.KindSecret {
		example = &corev1.Secret{}
		lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = byName
			return core.Secrets(ref.Namespace).List(ctx, o)
		}
		lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = byName
			return core.Secrets(ref.Namespace).Watch(ctx, o)
		}
	} else {
		example = &corev1.ConfigMap{}
		lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = byName
			return core.ConfigMaps(ref.Namespace).List(ctx, o)
		}
		lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = byName
			return core.ConfigMaps(ref.Namespace).Watch(ctx, o)
		}
	}
	from := cache.ToListWatcherWithWatchListSemantics(&lw, s.config.Client)
	if s.config.Memory != nil {
		from = s.config.Memory.Remember(ref, &lw)
	}
	r := cache.NewReflectorWithOptions(from, example, w,
		cache.ReflectorOptions{Name: ref.Namespace + "/" + ref.Name})
	s.running.Go(func() { r.RunWithContext(ctx) })
	return w
}

func (w *watched) get() any {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.obj
}

// set takes a new state over. The first is not a change: nobody could read before.
func (w *watched) set(obj any) {
	w.mu.Lock()
	first := !w.done
	change := !first && version(w.obj) != version(obj)
	w.obj, w.done = obj, true
	if first {
		close(w.synced)
	}
	w.mu.Unlock()
	if change {
		w.notify(w.ref)
	}
	if immutable(obj) {
		w.stop() // its data cannot change any more
	}
}

func version(obj any) string {
	if m, ok := obj.(metav1.Object); ok {
		return string(m.GetUID()) + "/" + m.GetResourceVersion()
	}
	return ""
}

func immutable(obj any) bool {
	var flag *bool
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		flag = o.Immutable
	case *corev1.Secret:
		flag = o.Immutable
	}
	return flag != nil && *flag
}

// Add implements cache.ReflectorStore.
func (w *watched) Add(obj any) error { w.set(obj); return nil }

// Update implements cache.ReflectorStore.
func (w *watched) Update(obj any) error { w.set(obj); return nil }

// Delete implements cache.ReflectorStore.
func (w *watched) Delete(any) error { w.set(nil); return nil }

// Replace implements cache.ReflectorStore.
func (w *watched) Replace(list []any, _ string) error {
	if len(list) == 0 {
		w.set(nil)
		return nil
	}
	w.set(list[0])
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watched) Resync() error { return nil }
