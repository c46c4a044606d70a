package client

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// A Source hands out the API server's own decoded objects.
type Source interface {
	// Kinds maps the Go types that can be read (pointer types) to their resources.
	Kinds() map[reflect.Type]schema.GroupVersionResource
	// List returns the objects that keep accepts (nil: all) and their revision.
	List(ctx context.Context, gvr schema.GroupVersionResource, keep func(runtime.Object) bool) ([]runtime.Object, string, error)
	// Watch delivers what changes after a revision among the objects that keep accepts.
	Watch(ctx context.Context, gvr schema.GroupVersionResource, revision string, keep func(runtime.Object) bool) (watch.Interface, error)
}

// sourceLister is a cache.ListerWatcher over a Source.
type sourceLister struct {
	source Source
	gvr    schema.GroupVersionResource
	keep   func(runtime.Object) bool
}

var _ cache.ListerWatcherWithContext = sourceLister{}

// IsWatchListSemanticsUnSupported tells reflectors to list and then watch:
// listing costs nothing here.
func (sourceLister) IsWatchListSemanticsUnSupported() bool { return true }

// ObjectList is a list of shared objects; typed lists would copy each of them.
type ObjectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements runtime.Object.
func (l *ObjectList) DeepCopyObject() runtime.Object {
	out := &ObjectList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]runtime.Object, len(l.Items))}
	for i, o := range l.Items {
		out.Items[i] = o.DeepCopyObject()
	}
	return out
}

func (s sourceLister) List(metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), metav1.ListOptions{})
}

func (s sourceLister) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	items, revision, err := s.source.List(ctx, s.gvr, s.keep)
	if err != nil {
		return nil, err
	}
	return &ObjectList{ListMeta: metav1.ListMeta{ResourceVersion: revision}, Items: items}, nil
}

func (s sourceLister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

func (s sourceLister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return s.source.Watch(ctx, s.gvr, o.ResourceVersion, s.keep)
}
