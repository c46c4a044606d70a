package apitest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/controllers"
)

// objectSource lets controllers follow all objects in the API server's own caches, as
// in the product: without it each kind has an informer of its own.
type objectSource struct{ api *apiserver.Server }

var _ controllers.ObjectSource = objectSource{}

// Run implements controllers.ObjectSource.
func (o objectSource) Run(ctx context.Context, sink controllers.ObjectSink) error {
	return o.api.Follow(ctx, follower{sink})
}

type follower struct{ sink controllers.ObjectSink }

func resourceOf(l rest.Listing) controllers.Resource {
	return controllers.Resource{GVR: l.GVR, Kind: l.GVK.Kind, Namespaced: l.Resource.Namespaced}
}

func (f follower) Resources(list []rest.Listing) {
	out := make([]controllers.Resource, len(list))
	for i, l := range list {
		out[i] = resourceOf(l)
	}
	f.sink.Resources(out)
}

func (f follower) Upsert(l rest.Listing, obj metav1.Object) { f.sink.Upsert(resourceOf(l), obj) }
func (f follower) Gone(l rest.Listing, obj metav1.Object)   { f.sink.Gone(resourceOf(l), obj) }
func (f follower) Synced()                                  { f.sink.Synced() }
