package source

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/volume"
)

// many are objects that are watched together. It is the store of their reflector.
type many struct {
	subject
	refer  func(metav1.Object) volume.Ref // what a pod refers to that depends on the object
	notify func(volume.Ref)

	mu   sync.Mutex // guards objs and done
	objs map[types.NamespacedName]metav1.Object
	done bool // synced is closed
}

var _ cache.ReflectorStore = (*many)(nil)

// follow begins to watch; Source.mu is held.
func (s *Source) follow(ctx context.Context, m *many, name string, example runtime.Object, lw cache.ListWatch) {
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(&lw, s.config.Client), example, m, cache.ReflectorOptions{Name: name})
	s.running.Go(func() { r.RunWithContext(ctx) })
}

func (m *many) get(namespace, name string) metav1.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objs[types.NamespacedName{Namespace: namespace, Name: name}]
}

func (m *many) list() []metav1.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.objs))
}

// change notes an object, or that it is gone, and tells of it.
func (m *many) change(obj any, gone bool) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return nil
	}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	m.mu.Lock()
	if gone {
		delete(m.objs, key)
	} else {
		m.objs[key] = o
	}
	m.mu.Unlock()
	m.notify(m.refer(o))
	return nil
}

// Add implements cache.ReflectorStore.
func (m *many) Add(obj any) error { return m.change(obj, false) }

// Update implements cache.ReflectorStore.
func (m *many) Update(obj any) error { return m.change(obj, false) }

// Delete implements cache.ReflectorStore.
func (m *many) Delete(obj any) error { return m.change(obj, true) }

// Replace implements cache.ReflectorStore. The first time is not a change: nobody could
// read before.
func (m *many) Replace(list []any, _ string) error {
	now := make(map[types.NamespacedName]metav1.Object, len(list))
	for _, obj := range list {
		if o, ok := obj.(metav1.Object); ok {
			now[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = o
		}
	}
	m.mu.Lock()
	before, first := m.objs, !m.done
	m.objs, m.done = now, true
	if first {
		close(m.synced)
	}
	m.mu.Unlock()
	if first {
		return nil
	}
	changed := map[volume.Ref]bool{}
	for key, o := range before {
		if version(o) != version(now[key]) {
			changed[m.refer(o)] = true
		}
	}
	for key, o := range now {
		if before[key] == nil {
			changed[m.refer(o)] = true
		}
	}
	for ref := range changed {
		m.notify(ref)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (m *many) Resync() error { return nil }
