package webhook

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

// Objects is what the plug-ins read.
type Objects interface {
	registry.Reader
	// Version returns a number that changes with every change of a resource's objects.
	Version(gvr schema.GroupVersionResource) int64
}

// An Index keeps the hooks of all configurations of one kind, in the order in which
// they are asked: by the configuration's name, then as the configuration lists them.
type Index struct {
	objects  Objects
	resource schema.GroupVersionResource
	hooks    func(obj runtime.Object) []*Hook

	mu      sync.RWMutex
	version int64
	list    []*Hook
	of      map[runtime.Object][]*Hook
}

// NewIndex returns the index of a resource; hooks makes those of one configuration.
func NewIndex(objects Objects, resource schema.GroupVersionResource, hooks func(runtime.Object) []*Hook) *Index {
	return &Index{objects: objects, resource: resource, hooks: hooks, version: -1}
}

// Hooks returns the hooks of the present configurations.
func (x *Index) Hooks() []*Hook {
	version := x.objects.Version(x.resource)
	x.mu.RLock()
	list, current := x.list, x.version == version
	x.mu.RUnlock()
	if current {
		return list
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	// A change during the listing raises the version again, and the next call lists anew.
	objects, err := x.objects.List(x.resource, "")
	if err != nil {
		return x.list
	}
	of := make(map[runtime.Object][]*Hook, len(objects))
	x.list = nil
	for _, obj := range objects {
		if of[obj] = x.of[obj]; of[obj] == nil {
			of[obj] = x.hooks(obj)
		}
		x.list = append(x.list, of[obj]...)
	}
	for obj, gone := range x.of {
		if of[obj] == nil {
			for _, h := range gone {
				if c, err := h.connect(); err == nil {
					c.Close()
				}
			}
		}
	}
	x.of, x.version = of, version
	return x.list
}
