package gatewayapi

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	watchtools "k8s.io/client-go/tools/watch"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// served returns when a kind is served.
func served(ctx context.Context, c dynamic.Interface, name string) error {
	resource := c.Resource(definitions)
	d, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil || established(d) {
		return err
	}
	_, err = watchtools.Until(ctx, d.GetResourceVersion(), one{resource, name}, func(e watch.Event) (bool, error) {
		d, ok := e.Object.(*unstructured.Unstructured)
		return ok && established(d), nil
	})
	return err
}

// one watches a single object.
type one struct {
	resource dynamic.ResourceInterface
	name     string
}

// WatchWithContext implements cache.WatcherWithContext.
func (w one) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.name).String()
	return w.resource.Watch(ctx, o)
}

// Watch implements cache.Watcher.
func (w one) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

func established(d *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}
