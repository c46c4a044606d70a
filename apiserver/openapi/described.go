package openapi

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/rest"
)

// describedKinds remembers what of a served kind goes into a document, as text, so
// that asking whether anything has changed costs little. Resources never change: a
// definition that does makes a new one.
type describedKinds struct {
	mu    sync.Mutex
	kinds map[describedKey]described
}

type describedKey struct {
	resource     *registry.Resource
	gvr          schema.GroupVersionResource
	subresources int // they are only added, while the server is made
}

type described struct {
	text   string
	custom bool // without a Go type: the schema is to be asked for
}

// mostDescribed bounds what is kept of resources that are gone.
const mostDescribed = 10_000

func (d *describedKinds) of(l *rest.Listing) described {
	key := describedKey{l.Resource, l.GVR, len(l.Subresources)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if out, ok := d.kinds[key]; ok {
		return out
	}
	r := l.Resource
	out := described{text: fmt.Sprint(l.GVR.Resource, l.GVK.Kind, r.Namespaced, r.Verbs, r.Create != nil, r.Live != nil, r.Status != nil, r.Scale != nil,
		slices.Sorted(maps.Keys(r.Views)), slices.Sorted(maps.Keys(l.Subresources)))}
	out.custom = r.New != nil && modelName(typeOf(r.New())) == ""
	if d.kinds == nil || len(d.kinds) >= mostDescribed {
		d.kinds = map[describedKey]described{}
	}
	d.kinds[key] = out
	return out
}
