package controllers

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/objects"
)

// initialSync bounds how long a kind that cannot be listed (a broken conversion
// webhook) can hold back the others at the start.
const initialSync = 30 * time.Second

// settle is when discovery is read again after a definition changed: a new kind is
// served a moment after its definition says so.
var settle = []time.Duration{0, time.Second, 5 * time.Second}

// definitions are the resources whose changes add or remove other resources.
var definitions = map[schema.GroupResource]bool{
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: true,
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}:             true,
}

// metadataSource is an objects.Source that watches metadata only: one informer for
// each kind, holding UIDs, owners, finalizers and nothing else.
type metadataSource struct {
	client    metadata.Interface
	discovery discovery.DiscoveryInterface
	log       *slog.Logger
	changed   chan struct{} // holds one token: definitions changed
}

var _ objects.Source = (*metadataSource)(nil)

// NewMetadataSource returns an objects.Source over a metadata client.
func NewMetadataSource(client metadata.Interface, d discovery.DiscoveryInterface, log *slog.Logger) objects.Source {
	return &metadataSource{client: client, discovery: d, log: log, changed: make(chan struct{}, 1)}
}

// Run follows all kinds until ctx ends.
func (s *metadataSource) Follow(ctx context.Context, sink objects.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var informers sync.WaitGroup
	defer informers.Wait()
	defer cancel()

	running := map[schema.GroupVersionResource]context.CancelFunc{}
	follow := func(list []objects.Resource) (synced []<-chan struct{}) {
		for _, r := range list {
			if running[r.GVR] != nil {
				continue
			}
			informer, registration := s.informer(r, sink)
			if registration == nil {
				continue
			}
			one, stop := context.WithCancel(ctx)
			running[r.GVR] = stop
			informers.Go(func() { informer.RunWithContext(one) })
			synced = append(synced, registration.HasSyncedChecker().Done())
		}
		for gvr, stop := range running {
			if !slices.ContainsFunc(list, func(r objects.Resource) bool { return r.GVR == gvr }) {
				stop()
				delete(running, gvr)
			}
		}
		return synced
	}

	list, err := ListableResources(s.discovery)
	if err != nil && len(list) == 0 {
		return err
	}
	sink.Resources(list)
	waitAll(ctx, follow(list), initialSync)
	sink.Synced()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		for _, wait := range settle {
			if !pause(ctx, wait) {
				return nil
			}
			now, err := ListableResources(s.discovery)
			if err != nil && len(now) < len(list) {
				// A group that does not answer is not a group that is gone.
				s.log.Debug("discovery is incomplete", base.KeyError, err)
				now = union(now, list)
			}
			if slices.Equal(now, list) {
				continue
			}
			list = now
			sink.Resources(list)
			follow(list)
		}
	}
}

func (s *metadataSource) informer(r objects.Resource, sink objects.Sink) (cache.SharedIndexInformer, cache.ResourceEventHandlerRegistration) {
	informer := metadatainformer.NewFilteredMetadataInformer(s.client, r.GVR, metav1.NamespaceAll, 0, nil, nil).Informer()
	_ = informer.SetTransform(slim) // fails only on a started informer
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		s.log.Debug("watching metadata failed", base.KeyKind, r.GVR.String(), base.KeyError, err)
	})
	defines := definitions[r.GVR.GroupResource()]
	registration, err := informer.AddEventHandler(On(func(old, now *metav1.PartialObjectMetadata) {
		if now == nil {
			sink.Gone(r, old)
		} else {
			sink.Upsert(r, now)
		}
		if defines {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}
	}))
	if err != nil {
		return nil, nil
	}
	return informer, registration
}

// slim keeps of an object's metadata what ownership needs.
func slim(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields, m.Annotations, m.Labels = nil, nil, nil
	}
	return obj, nil
}

// ListableResources returns every resource that can be listed, watched and
// deleted, each in its preferred version, without Events. Groups that do not
// answer are missing from the list and named by the error.
func ListableResources(d discovery.DiscoveryInterface) ([]objects.Resource, error) {
	groups, err := d.ServerPreferredResources()
	var out []objects.Resource
	for _, g := range groups {
		gv, parseErr := schema.ParseGroupVersion(g.GroupVersion)
		if parseErr != nil {
			continue
		}
		for _, r := range g.APIResources {
			verbs := []string(r.Verbs)
			if !slices.Contains(verbs, "list") || !slices.Contains(verbs, "watch") || !slices.Contains(verbs, "delete") {
				continue
			}
			if r.Name == "events" && (gv.Group == "" || gv.Group == "events.k8s.io") {
				continue // they own nothing, are owned by nothing, and are many
			}
			version := gv
			if r.Group != "" || r.Version != "" {
				version = schema.GroupVersion{Group: r.Group, Version: r.Version}
			}
			out = append(out, objects.Resource{GVR: version.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced})
		}
	}
	slices.SortFunc(out, func(a, b objects.Resource) int {
		return slices.Compare([]string{a.GVR.Group, a.GVR.Resource}, []string{b.GVR.Group, b.GVR.Resource})
	})
	return out, err
}

// union returns now and those of old whose resource now lacks.
func union(now, old []objects.Resource) []objects.Resource {
	out := slices.Clone(now)
	for _, o := range old {
		if !slices.ContainsFunc(now, func(r objects.Resource) bool { return r.GVR.GroupResource() == o.GVR.GroupResource() }) {
			out = append(out, o)
		}
	}
	return out
}

// waitAll returns when all channels are closed, after d, or when ctx ends.
func waitAll(ctx context.Context, all []<-chan struct{}, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// pause waits for d; false means that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
