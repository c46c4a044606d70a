package client

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Factory is a SharedInformerFactory whose informers read a Source where it
// knows the type, and the API through a client where it does not.
type Factory struct {
	client kubernetes.Interface
	source Source
	name   *cache.InformerName

	mu        sync.Mutex
	informers map[reflect.Type]cache.SharedIndexInformer
	started   map[reflect.Type]bool
	ending    bool
	running   sync.WaitGroup
}

var _ informers.SharedInformerFactory = (*Factory)(nil)

// NewFactory returns a factory. Without a source it reads everything through client.
func NewFactory(client kubernetes.Interface, source Source) *Factory {
	return &Factory{
		client: client, source: source,
		informers: map[reflect.Type]cache.SharedIndexInformer{}, started: map[reflect.Type]bool{},
	}
}

// InformerFor returns the shared informer of obj's type, making it if needed.
func (f *Factory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := reflect.TypeOf(obj)
	if i, ok := f.informers[t]; ok {
		return i
	}
	var i cache.SharedIndexInformer
	if gvr, ok := f.sourced(t); ok {
		i = informer(f.source, gvr, obj, nil)
	} else {
		i = newFunc(f.client, 0)
	}
	f.informers[t] = i
	return i
}

func (f *Factory) sourced(t reflect.Type) (schema.GroupVersionResource, bool) {
	if f.source == nil {
		return schema.GroupVersionResource{}, false
	}
	gvr, ok := f.source.Kinds()[t]
	return gvr, ok
}

func informer(source Source, gvr schema.GroupVersionResource, obj runtime.Object, keep func(runtime.Object) bool) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(sourceLister{source, gvr, keep}, obj, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// Informer returns an informer of its own, not shared by a factory, of those
// objects of a resource that keep accepts. example has the objects' type.
func Informer(source Source, gvr schema.GroupVersionResource, example runtime.Object, keep func(runtime.Object) bool) cache.SharedIndexInformer {
	return informer(source, gvr, example, keep)
}

// InformerName is the name for metrics.
func (f *Factory) InformerName() *cache.InformerName { return f.name }

// Start runs the informers that were asked for until stop is closed.
func (f *Factory) Start(stop <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stop)) }

// StartWithContext runs the informers that were asked for until ctx ends.
func (f *Factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending {
		return
	}
	for t, i := range f.informers {
		if !f.started[t] {
			f.started[t] = true
			f.running.Go(func() { i.RunWithContext(ctx) })
		}
	}
}

// Shutdown waits until all informers have ended; the context that they were
// started with must end.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.running.Wait()
}

// WaitForCacheSync waits until the started informers have synced.
func (f *Factory) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stop)).Synced
}

// WaitForCacheSyncWithContext waits until the started informers have synced or ctx ends.
func (f *Factory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	f.mu.Lock()
	waiting := map[reflect.Type]cache.SharedIndexInformer{}
	for t, i := range f.informers {
		if f.started[t] {
			waiting[t] = i
		}
	}
	f.mu.Unlock()
	result := cache.SyncResult{Synced: map[reflect.Type]bool{}}
	for t, i := range waiting {
		select {
		case <-i.HasSyncedChecker().Done():
			result.Synced[t] = true
		case <-ctx.Done():
			result.Synced[t] = i.HasSynced()
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

// ForResource returns the informer of a resource.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) (informers.GenericInformer, error) {
	if f.source != nil {
		for t, r := range f.source.Kinds() {
			if r == gvr {
				obj := reflect.New(t.Elem()).Interface().(runtime.Object)
				return &generic{f.InformerFor(obj, nil), gvr.GroupResource()}, nil
			}
		}
	}
	return nil, fmt.Errorf("no informer for %s", gvr)
}

type generic struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

func (g *generic) Informer() cache.SharedIndexInformer { return g.informer }
func (g *generic) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}
