package horizontalpodautoscaler

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// An api reaches what no typed client reaches: the scale of any kind, and the APIs
// of metrics.
type api struct {
	client    rest.Interface
	discovery discovery.DiscoveryInterface

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]schema.GroupVersionResource // guarded by mu: those of targets
}

func newAPI(config *rest.Config) (*api, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &api{client: client, discovery: discovery.NewDiscoveryClient(client), kinds: map[schema.GroupVersionKind]schema.GroupVersionResource{}}, nil
}

// get reads an object's JSON.
func (a *api) get(ctx context.Context, path string, query url.Values, into any) error {
	r := a.client.Get().AbsPath(path)
	for name, values := range query {
		for _, v := range values {
			r.Param(name, v)
		}
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (a *api) getScale(ctx context.Context, path string) (*autoscalingv1.Scale, error) {
	scale := &autoscalingv1.Scale{}
	return scale, a.get(ctx, path, nil, scale)
}

func (a *api) putScale(ctx context.Context, path string, scale *autoscalingv1.Scale) error {
	data, err := json.Marshal(scale)
	if err != nil {
		return err
	}
	return a.client.Put().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(data).Do(ctx).Error()
}

// scalePath returns where the scale of an object is.
func (a *api) scalePath(kind schema.GroupVersionKind, namespace, name string) (string, error) {
	gvr, err := a.resourceOf(kind)
	if err != nil {
		return "", err
	}
	return groupPath(gvr.GroupVersion()) + "/namespaces/" + namespace + "/" + gvr.Resource + "/" + url.PathEscape(name) + "/scale", nil
}

func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// resourceOf finds the resource of a kind: in the version that is given, else in
// any other of the group, the preferred one first.
func (a *api) resourceOf(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	a.mu.Lock()
	gvr, known := a.kinds[kind]
	a.mu.Unlock()
	if known {
		return gvr, nil
	}
	find := func(versions ...schema.GroupVersion) (bool, error) {
		for _, gv := range versions {
			found, err := a.find(gv, kind.Kind)
			if err != nil {
				return false, err
			}
			if found == "" {
				continue
			}
			gvr = gv.WithResource(found)
			a.mu.Lock()
			a.kinds[kind] = gvr
			a.mu.Unlock()
			return true, nil
		}
		return false, nil
	}
	if kind.Version != "" {
		if ok, err := find(kind.GroupVersion()); ok || err != nil {
			return gvr, err
		}
	}
	others, err := a.versions(kind.Group)
	if err != nil {
		return gvr, err
	}
	if ok, err := find(others...); ok || err != nil {
		return gvr, err
	}
	return gvr, &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
}

// find returns the resource of a kind in a version, "" if there is none.
func (a *api) find(gv schema.GroupVersion, kind string) (string, error) {
	list, err := a.discovery.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Kind == kind && !strings.Contains(r.Name, "/") {
			return r.Name, nil
		}
	}
	return "", nil
}

// versions returns the versions of a group, the preferred one first.
func (a *api) versions(group string) ([]schema.GroupVersion, error) {
	all, err := a.discovery.ServerGroups()
	if err != nil {
		return nil, err
	}
	var out []schema.GroupVersion
	for i := range all.Groups {
		if all.Groups[i].Name != group {
			continue
		}
		for _, v := range append([]metav1.GroupVersionForDiscovery{all.Groups[i].PreferredVersion}, all.Groups[i].Versions...) {
			if v.Version != "" {
				out = append(out, schema.GroupVersion{Group: group, Version: v.Version})
			}
		}
	}
	return out, nil
}

// forgetKind has a kind looked up again: its definition may have changed.
func (a *api) forgetKind(kind schema.GroupVersionKind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kinds, kind)
}
