package checkpoint

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/client"
)

// kind is one that a node needs as a whole.
type kind struct {
	gvr schema.GroupVersionResource
	new func() Object
}

var kinds = []kind{
	{corev1.SchemeGroupVersion.WithResource("services"), func() Object { return &corev1.Service{} }},
	{discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), func() Object { return &discoveryv1.EndpointSlice{} }},
	{corev1.SchemeGroupVersion.WithResource("nodes"), func() Object { return &corev1.Node{} }},
	{networkingv1.SchemeGroupVersion.WithResource("networkpolicies"), func() Object { return &networkingv1.NetworkPolicy{} }},
	// Listed once there is a NetworkPolicy.
	{corev1.SchemeGroupVersion.WithResource("pods"), func() Object { return &corev1.Pod{} }},
	{corev1.SchemeGroupVersion.WithResource("namespaces"), func() Object { return &corev1.Namespace{} }},
}

// A Source makes informers that remember, for client.NewFactory.
type Source struct {
	types map[reflect.Type]schema.GroupVersionResource
	lists map[schema.GroupVersionResource]*Remembered
}

var _ client.Source = (*Source)(nil)

// NewSource returns the source of the kinds that a node reads as a whole.
func NewSource(s *Store, c kubernetes.Interface) *Source {
	out := &Source{types: map[reflect.Type]schema.GroupVersionResource{}, lists: map[schema.GroupVersionResource]*Remembered{}}
	for _, k := range kinds {
		out.types[reflect.TypeOf(k.new())] = k.gvr
		out.lists[k.gvr] = s.Remember(List{Bucket: k.gvr.Resource, New: k.new}, reader(c, k.gvr, fields.Everything()))
	}
	return out
}

// Pods are those of one node: the ones that it runs.
func Pods(s *Store, c kubernetes.Interface, node string) *Remembered {
	return s.Remember(List{Bucket: "own-pods", New: func() Object { return &corev1.Pod{} }},
		reader(c, corev1.SchemeGroupVersion.WithResource("pods"), fields.OneTermEqualSelector("spec.nodeName", node)))
}

// Node is the object of one node.
func Node(s *Store, c kubernetes.Interface, node string) *Remembered {
	return s.Remember(List{Bucket: "own-node", New: func() Object { return &corev1.Node{} }},
		reader(c, corev1.SchemeGroupVersion.WithResource("nodes"), fields.OneTermEqualSelector("metadata.name", node)))
}

// Informer returns an informer over a list.
func Informer(r *Remembered, example runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(r, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func reader(c kubernetes.Interface, gvr schema.GroupVersionResource, selector fields.Selector) cache.ListerWatcher {
	var r restclient.Interface
	switch gvr.Group {
	case discoveryv1.GroupName:
		r = c.DiscoveryV1().RESTClient()
	case networkingv1.GroupName:
		r = c.NetworkingV1().RESTClient()
	default:
		r = c.CoreV1().RESTClient()
	}
	return cache.NewListWatchFromClient(r, gvr.Resource, metav1.NamespaceAll, selector)
}

// Kinds implements client.Source.
func (s *Source) Kinds() map[reflect.Type]schema.GroupVersionResource { return s.types }

// List implements client.Source.
func (s *Source) List(ctx context.Context, gvr schema.GroupVersionResource, _ func(runtime.Object) bool) ([]runtime.Object, string, error) {
	list, err := s.lists[gvr].ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, "", err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, "", err
	}
	return items, m.GetResourceVersion(), nil
}

// Watch implements client.Source.
func (s *Source) Watch(ctx context.Context, gvr schema.GroupVersionResource, revision string, _ func(runtime.Object) bool) (watch.Interface, error) {
	return s.lists[gvr].WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: revision, AllowWatchBookmarks: true})
}

// trim drops what changes often and no node needs of others.
func trim(o Object) {
	if n, ok := o.(*corev1.Node); ok {
		n.Status.Images = nil
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	}
}
