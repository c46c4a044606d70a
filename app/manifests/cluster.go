package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	// manager owns the fields that files set.
	manager = "periplus-manifests"
	// annotation names the file that an object came from.
	annotation = "periplus.io/manifest"
	// establishTime is how long a new kind may take to be served.
	establishTime = 10 * time.Second
)

// cluster is where objects of any kind are applied.
type cluster struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newCluster(config *restclient.Config) (*cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}, nil
}

// mapping finds the resource of a kind; what is served is read again if it is not known.
func (c *cluster) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		m, err = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return m, err
}

// resolve names an object completely.
func (c *cluster) resolve(u *unstructured.Unstructured) (reference, error) {
	kind := u.GroupVersionKind()
	m, err := c.mapping(kind)
	if err != nil {
		return reference{}, err
	}
	ref := reference{kind.Group, kind.Version, kind.Kind, u.GetNamespace(), u.GetName()}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		ref.Namespace = ""
	} else if ref.Namespace == "" {
		ref.Namespace = metav1.NamespaceDefault
	}
	return ref, nil
}

func (c *cluster) resource(ref reference) (dynamic.ResourceInterface, error) {
	m, err := c.mapping(schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	if ref.Namespace != "" {
		return c.client.Resource(m.Resource).Namespace(ref.Namespace), nil
	}
	return c.client.Resource(m.Resource), nil
}

// apply sends an object as it is in the file.
func (c *cluster) apply(ctx context.Context, file string, u *unstructured.Unstructured, ref reference) error {
	on, err := c.resource(ref)
	if err != nil {
		return err
	}
	u = u.DeepCopy()
	u.SetNamespace(ref.Namespace)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = file
	u.SetAnnotations(annotations)
	body, err := json.Marshal(u)
	if err != nil {
		return err
	}
	force := true
	if _, err := on.Patch(ctx, ref.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force, FieldValidation: metav1.FieldValidationStrict}); err != nil {
		return err
	}
	if ref.Kind == "CustomResourceDefinition" {
		return c.established(ctx, on, ref)
	}
	return nil
}

// established waits until a new kind is served.
func (c *cluster) established(ctx context.Context, on dynamic.ResourceInterface, ref reference) error {
	ctx, cancel := context.WithTimeout(ctx, establishTime)
	defer cancel()
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", ref.Name).String()}
	list, err := on.List(ctx, only)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if isEstablished(&list.Items[i]) {
			return nil
		}
	}
	only.ResourceVersion = list.GetResourceVersion()
	w, err := on.Watch(ctx, only)
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); ok && isEstablished(u) {
			return nil
		}
	}
	return fmt.Errorf("the kind is not served after %s: %w", establishTime, watchtools.ErrWatchClosed)
}

func isEstablished(u *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}

// remove deletes an object that still belongs to the file.
func (c *cluster) remove(ctx context.Context, file string, ref reference) error {
	on, err := c.resource(ref)
	if meta.IsNoMatchError(err) {
		return nil // its kind is gone, and so is it
	}
	if err != nil {
		return err
	}
	u, err := on.Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if u.GetAnnotations()[annotation] != file {
		return nil // somebody has taken it over
	}
	background, uid := metav1.DeletePropagationBackground, u.GetUID()
	err = on.Delete(ctx, ref.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
