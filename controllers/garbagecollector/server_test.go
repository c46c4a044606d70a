package garbagecollector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/periplus/periplus/client/objects"
)

// server keeps metadata in memory, with finalizers and propagation policies as an
// API server has them. It is both a metadata client and an objects.Source, without
// anything between a write and its event.
type server struct {
	t *testing.T

	mu      sync.Mutex
	objects map[string]*metav1.PartialObjectMetadata // by resource/namespace/name
	version int
	sink    objects.Sink
	kinds   []objects.Resource
	changed chan struct{}
	deletes []string // names, in the order in which objects went
}

func newServer(t *testing.T, kinds ...objects.Resource) *server {
	return &server{t: t, objects: map[string]*metav1.PartialObjectMetadata{}, kinds: kinds, changed: make(chan struct{})}
}

var (
	owners = objects.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "owners"}, Kind: "Owner", Namespaced: true}
	things = objects.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}, Kind: "Thing", Namespaced: true}
)

func (s *server) key(r objects.Resource, o metav1.Object) string {
	return r.GVR.Resource + "/" + o.GetNamespace() + "/" + o.GetName()
}

// Run tells the source's sink what exists; later writes tell it themselves.
func (s *server) Follow(ctx context.Context, sink objects.Sink) error {
	s.mu.Lock()
	s.sink = sink
	sink.Resources(s.kinds)
	for _, r := range s.kinds {
		for k, o := range s.objects {
			if k == s.key(r, o) {
				sink.Upsert(r, o.DeepCopy())
			}
		}
	}
	s.mu.Unlock()
	sink.Synced()
	<-ctx.Done()
	return nil
}

// put creates or replaces an object of namespace "ns".
func (s *server) put(r objects.Resource, name string, change func(*metav1.PartialObjectMetadata)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
	if change != nil {
		change(o)
	}
	s.storeLocked(r, o)
}

func (s *server) storeLocked(r objects.Resource, o *metav1.PartialObjectMetadata) {
	s.version++
	o.ResourceVersion = strconv.Itoa(s.version)
	k := s.key(r, o)
	if o.DeletionTimestamp != nil && len(o.Finalizers) == 0 {
		delete(s.objects, k)
		s.deletes = append(s.deletes, o.Name)
		if s.sink != nil {
			s.sink.Gone(r, o.DeepCopy())
		}
	} else {
		s.objects[k] = o
		if s.sink != nil {
			s.sink.Upsert(r, o.DeepCopy())
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) get(r objects.Resource, name string) *metav1.PartialObjectMetadata {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[r.GVR.Resource+"/ns/"+name].DeepCopy()
}

// until waits until condition holds, trying it after every write.
func (s *server) until(what string, condition func() bool) {
	s.t.Helper()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-s.t.Context().Done():
			s.t.Fatalf("test ended while waiting until %s", what)
		}
	}
}

// Resource makes server a metadata.Interface.
func (s *server) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	for _, r := range s.kinds {
		if r.GVR == gvr {
			return &client{s: s, r: r}
		}
	}
	panic("no such resource: " + gvr.String())
}

type client struct {
	metadata.ResourceInterface // what the collector does not call
	s                          *server
	r                          objects.Resource
	namespace                  string
}

func (c *client) Namespace(ns string) metadata.ResourceInterface {
	return &client{s: c.s, r: c.r, namespace: ns}
}

func (c *client) findLocked(name string) (*metav1.PartialObjectMetadata, error) {
	o := c.s.objects[c.r.GVR.Resource+"/"+c.namespace+"/"+name]
	if o == nil {
		return nil, apierrors.NewNotFound(c.r.GVR.GroupResource(), name)
	}
	return o.DeepCopy(), nil
}

func (c *client) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.findLocked(name)
}

func (c *client) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, fmt.Errorf("no watch")
}

func (c *client) Delete(_ context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	o, err := c.findLocked(name)
	if err != nil {
		return err
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != o.UID || p.ResourceVersion != nil && *p.ResourceVersion != o.ResourceVersion) {
		return apierrors.NewConflict(c.r.GVR.GroupResource(), name, fmt.Errorf("precondition failed"))
	}
	now := metav1.Now()
	o.DeletionTimestamp = &now
	if options.PropagationPolicy != nil {
		switch *options.PropagationPolicy {
		case metav1.DeletePropagationForeground:
			o.Finalizers = append(o.Finalizers, metav1.FinalizerDeleteDependents)
		case metav1.DeletePropagationOrphan:
			o.Finalizers = append(o.Finalizers, metav1.FinalizerOrphanDependents)
		}
	}
	c.s.storeLocked(c.r, o)
	return nil
}

// Patch applies what merge patches of metadata the collector makes.
func (c *client) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	o, err := c.findLocked(name)
	if err != nil {
		return nil, err
	}
	var patch struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
			OwnerReferences *[]metav1.OwnerReference
			Finalizers      *[]string
		}
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	if patch.Metadata.UID != o.UID || patch.Metadata.ResourceVersion != o.ResourceVersion {
		return nil, apierrors.NewConflict(c.r.GVR.GroupResource(), name, fmt.Errorf("it changed"))
	}
	if patch.Metadata.OwnerReferences != nil {
		o.OwnerReferences = slices.Clone(*patch.Metadata.OwnerReferences)
	}
	if patch.Metadata.Finalizers != nil {
		o.Finalizers = slices.Clone(*patch.Metadata.Finalizers)
	}
	c.s.storeLocked(c.r, o)
	return o.DeepCopy(), nil
}
