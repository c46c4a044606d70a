package objects

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Resource names one kind of object that can be listed and deleted.
type Resource struct {
	GVR        schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// A Source streams the metadata of every object of the cluster, of all kinds that
// can be listed, watched and deleted, also of kinds that appear later.
type Source interface {
	// Follow calls sink for everything that exists, then for each change, until ctx
	// ends. It calls sink.Synced once, when everything that exists has been told.
	// Calls for one resource come in order and one at a time.
	Follow(ctx context.Context, sink Sink) error
}

// A Sink takes objects. It must not block, and must not write to what it gets.
type Sink interface {
	// Upsert says that obj exists in this state.
	Upsert(r Resource, obj metav1.Object)
	// Gone says that obj does not exist any more.
	Gone(r Resource, obj metav1.Object)
	// Resources tells the whole list of kinds, in their stored versions, at first and
	// when it changed.
	Resources(list []Resource)
	// Synced says that everything that existed at the start has been told.
	Synced()
}
