package rest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/registry"
)

// Add serves a resource.
func (s *Server) Add(ctx context.Context, r *registry.Resource) (*Objects, error) {
	codec := s.codecs.Storage(r)
	var cache *cacher.Cache
	if r.Create == nil && r.Live == nil {
		var err error
		if cache, err = s.config.Caches.Add(ctx, r.Prefix(), codec); err != nil {
			return nil, err
		}
	}
	return s.install(r, codec, cache), nil
}

// Replace serves r in place of the resource that is stored under the same path,
// without a moment in which it is not there. Its objects are decoded anew;
// watches end, and clients go on from the revision that they have.
func (s *Server) Replace(old *Objects, r *registry.Resource) (*Objects, error) {
	if old.Resource.Prefix() != r.Prefix() {
		return nil, fmt.Errorf("resource %s is stored under %q, its successor under %q", r.GVR, old.Resource.Prefix(), r.Prefix())
	}
	codec := s.codecs.Storage(r)
	s.config.Caches.Recode(r.Prefix(), codec)
	s.mu.Lock()
	s.dropLocked(old)
	s.mu.Unlock()
	return s.install(r, codec, old.Cache), nil
}

// Remove ends the service of a resource and forgets its objects; what is stored stays.
func (s *Server) Remove(o *Objects) {
	s.mu.Lock()
	s.dropLocked(o)
	s.announceLocked()
	s.mu.Unlock()
	if o.Cache != nil {
		s.config.Caches.Remove(o.Resource.Prefix())
	}
}

func (s *Server) dropLocked(o *Objects) {
	for gvr, e := range s.endpoints {
		if e.objects == o {
			close(e.gone)
			delete(s.endpoints, gvr)
		}
	}
	if s.objects[o.Resource.GVR] == o {
		delete(s.objects, o.Resource.GVR)
	}
}

func (s *Server) install(r *registry.Resource, codec *StorageCodec, cache *cacher.Cache) *Objects {
	o := &Objects{
		Resource: r, Cache: cache, server: s, set: s.config.Caches, store: s.config.Store,
		codec: codec, chain: s.config.Admission, journey: s.config.Journey, mayCreate: s.config.MayCreate,
		compares: comparesAll(r),
		types:    sync.OnceValues(func() (managedfields.TypeConverter, error) { return s.types(r) }),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[r.GVR] = o
	own := r.View()
	if !r.Unserved {
		s.endpoints[r.GVR] = &endpoint{server: s, gvr: r.GVR, gvk: r.GVK(), objects: o, also: r.Self, blank: r.New(), view: own, listed: r, gone: make(chan struct{})}
		if r.Self != nil && r.Self.Own != nil {
			s.endpoints[r.GVR].view = r.Self.Own
		}
	}
	for i := range r.Also {
		also := &r.Also[i]
		gvr := also.GV.WithResource(r.GVR.Resource)
		e := &endpoint{server: s, gvr: gvr, gvk: also.GV.WithKind(r.Kind), objects: o, also: also, blank: also.New(), view: own, listed: r, gone: make(chan struct{})}
		if also.Own != nil {
			e.view, e.listed = also.Own, shownAs(r, also.Own)
		}
		s.endpoints[gvr] = e
	}
	s.announceLocked()
	return o
}

// comparesAll reports whether objects can be compared in all versions of a resource.
func comparesAll(r *registry.Resource) bool {
	covered := func(obj runtime.Object) bool {
		_, custom := obj.(ownership.Custom)
		return custom || ownership.Covers(obj)
	}
	return covered(r.New()) && !slices.ContainsFunc(r.Also, func(v registry.Served) bool { return !covered(v.New()) })
}

// types reads the types of all versions of a resource.
func (s *Server) types(r *registry.Resource) (managedfields.TypeConverter, error) {
	if s.config.Types == nil {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	kinds := map[schema.GroupVersionKind]runtime.Object{r.GVK(): r.New()}
	for i := range r.Also {
		kinds[r.Also[i].GV.WithKind(r.Kind)] = r.Also[i].New()
	}
	return s.config.Types(kinds)
}

// shownAs is r with what holds for one of its versions.
func shownAs(r *registry.Resource, v *registry.View) *registry.Resource {
	out := *r
	out.Strategy, out.Status, out.Scale, out.Table = v.Strategy, v.Status, v.Scale, v.Table
	out.SelectableFields, out.Fields, out.Deprecated = v.SelectableFields, v.Fields, v.Deprecated
	return &out
}

func (s *Server) announceLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// A Listing is one served version of a resource, for discovery.
type Listing struct {
	GVR          schema.GroupVersionResource
	GVK          schema.GroupVersionKind
	Resource     *registry.Resource
	Subresources map[string]Subresource // those with a life of their own, by name
}

// Listings returns all served versions.
func (s *Server) Listings() []Listing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Listing, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		out = append(out, s.listingLocked(e))
	}
	return out
}

func (s *Server) listingLocked(e *endpoint) Listing {
	l := Listing{GVR: e.gvr, GVK: e.gvk, Resource: e.listed, Subresources: map[string]Subresource{}}
	prefix := e.gvr.GroupResource().String() + "/"
	for key, sub := range s.extra {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			l.Subresources[key[len(prefix):]] = sub
		}
	}
	return l
}

// A Stored is a kind of which objects are stored, in one served version: the
// stored one if that is served.
type Stored struct {
	Listing
	Objects *Objects
}

// Stored lists all kinds that are stored and served. The channel is closed when
// the list is no longer right.
func (s *Server) Stored() ([]Stored, <-chan struct{}) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	byObjects := map[*Objects]*endpoint{}
	for _, e := range s.endpoints {
		if e.objects.Cache == nil {
			continue
		}
		if other := byObjects[e.objects]; other == nil || e.gvr == e.objects.Resource.GVR || other.gvr != e.objects.Resource.GVR && e.gvr.Version < other.gvr.Version {
			byObjects[e.objects] = e
		}
	}
	out := make([]Stored, 0, len(byObjects))
	for o, e := range byObjects {
		out = append(out, Stored{s.listingLocked(e), o})
	}
	return out, s.changed
}

// ResourceOf returns the stored resource that serves a kind.
func (s *Server) ResourceOf(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.endpoints {
		if e.gvk == gvk && e.objects.Cache != nil {
			return e.objects.Resource.GVR, e.objects.Resource.Namespaced, true
		}
	}
	return schema.GroupVersionResource{}, false, false
}
