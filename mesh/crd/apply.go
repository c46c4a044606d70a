package crd

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	watchtools "k8s.io/client-go/tools/watch"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// Apply makes the definitions that are not there and returns when all are served.
// Those that somebody else has made, with Istio's own schemas, stay.
func Apply(ctx context.Context, c dynamic.Interface) error {
	resource := c.Resource(definitions)
	for _, d := range Definitions() {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			return err
		}
		delete(object, "status")
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if _, err := resource.Create(ctx, u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make %s: %w", d.Name, err)
		}
	}
	for _, d := range Definitions() {
		if err := wait(ctx, resource, d.Name); err != nil {
			return fmt.Errorf("wait for %s to be served: %w", d.Name, err)
		}
	}
	return nil
}

// wait returns when a definition is established.
func wait(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	d, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if established(d) {
		return nil
	}
	only := "metadata.name=" + name
	lw := watcher{resource, only}
	_, err = watchtools.Until(ctx, d.GetResourceVersion(), lw, func(e watch.Event) (bool, error) {
		d, ok := e.Object.(*unstructured.Unstructured)
		return ok && established(d), nil
	})
	return err
}

type watcher struct {
	resource dynamic.ResourceInterface
	fields   string
}

// WatchWithContext implements cache.WatcherWithContext.
func (w watcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector = w.fields
	return w.resource.Watch(ctx, o)
}

// Watch implements cache.Watcher.
func (w watcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return w.WatchWithContext(context.Background(), o)
}

func established(d *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == string(apiextensionsv1.Established) && m["status"] == string(apiextensionsv1.ConditionTrue) {
			return true
		}
	}
	return false
}
