package resourcequota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/periplus/periplus/client/objects"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/quota"
)

// count returns what a quota's namespace takes of it: an amount for each hard limit.
func (r *reconciler) count(ctx context.Context, q *corev1.ResourceQuota) (corev1.ResourceList, error) {
	names := quota.Names(q.Spec.Hard)
	used := corev1.ResourceList{}
	kinds := sets.New[schema.GroupResource]()
	for _, name := range names {
		hard := q.Spec.Hard[name]
		used[name] = *resource.NewQuantity(0, hard.Format)
		if gr, ok := quota.Kind(name); ok {
			kinds.Insert(gr)
		}
	}
	now := r.Clock.Now()
	add := func(gr schema.GroupResource, obj runtime.Object) {
		if quota.Matches(q, obj) {
			used = quota.Add(used, quota.Only(quota.Usage(gr, obj, now), names))
		}
	}
	for gr := range kinds {
		switch gr {
		case quota.Pods:
			list, err := r.pods.Pods(q.Namespace).List(labels.Everything())
			if err != nil {
				return nil, err
			}
			for _, obj := range list {
				add(gr, obj)
			}
		case quota.Services:
			list, err := r.services.Services(q.Namespace).List(labels.Everything())
			if err != nil {
				return nil, err
			}
			for _, obj := range list {
				add(gr, obj)
			}
		case quota.Claims:
			list, err := r.claims.PersistentVolumeClaims(q.Namespace).List(labels.Everything())
			if err != nil {
				return nil, err
			}
			for _, obj := range list {
				add(gr, obj)
			}
		default:
			n, err := r.others(ctx, gr, q.Namespace)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if quota.Covers(gr, name) {
					used[name] = *resource.NewQuantity(n, resource.DecimalSI)
				}
			}
		}
	}
	return used, nil
}

// others counts the objects of a kind that is known by its metadata only.
func (r *reconciler) others(ctx context.Context, gr schema.GroupResource, namespace string) (int64, error) {
	r.once.Do(func() { close(r.wanted) })
	if r.Metadata == nil {
		return 0, nil
	}
	r.mu.Lock()
	gvr, ok := r.kinds[gr]
	r.mu.Unlock()
	if !ok {
		return 0, nil // there is no such kind yet, or Run will tell
	}
	list, err := r.Metadata.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return int64(len(list.Items)), nil
}

// Run watches all kinds from when a quota counts one that has no informer here.
func (r *reconciler) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.wanted:
	}
	if r.Objects == nil {
		return nil
	}
	return r.Objects.Follow(ctx, sink{r})
}

// sink follows the objects of all kinds.
type sink struct{ *reconciler }

var _ objects.Sink = sink{}

// Upsert implements objects.Sink: admission has charged it.
func (sink) Upsert(objects.Resource, metav1.Object) {}

// Gone implements objects.Sink.
func (s sink) Gone(r objects.Resource, obj metav1.Object) {
	switch gr := r.GVR.GroupResource(); gr {
	case quota.Pods, quota.Services, quota.Claims: // have informers
	default:
		if r.Namespaced {
			s.freed(gr, obj.GetNamespace())
		}
	}
}

// Resources implements objects.Sink: quotas of kinds that have just appeared
// are counted.
func (s sink) Resources(list []objects.Resource) {
	kinds := make(map[schema.GroupResource]schema.GroupVersionResource, len(list))
	for _, r := range list {
		kinds[r.GVR.GroupResource()] = r.GVR
	}
	s.mu.Lock()
	s.kinds = kinds
	s.mu.Unlock()
	quotas, err := s.quotas.List(labels.Everything())
	if err != nil {
		return // the lister reads memory: it does not fail
	}
	for _, q := range quotas {
		s.Queue.Add(controllers.KeyOf(q))
	}
}

// Synced implements objects.Sink.
func (sink) Synced() {}
