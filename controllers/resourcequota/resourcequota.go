package resourcequota

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/quota"
)

// recount is how often a quota is counted anew though nothing was seen to happen.
const recount = 5 * time.Minute

// Controller declares the counting of quotas.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	quotas := core.WithResource("resourcequotas")
	return controllers.Controller{
		Name:   "resourcequota-controller",
		Reads:  []schema.GroupVersionResource{quotas, core.WithResource("pods"), core.WithResource("services"), core.WithResource("persistentvolumeclaims"), {Group: "*", Version: "*", Resource: "*"}},
		Writes: []schema.GroupVersionResource{quotas},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	quotas   corelisters.ResourceQuotaLister
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	claims   corelisters.PersistentVolumeClaimLister

	wanted chan struct{} // closed when a quota counts objects of other kinds
	once   sync.Once

	mu    sync.Mutex
	kinds map[schema.GroupResource]schema.GroupVersionResource // guarded by mu; those that there are
}

var _ controllers.Runner = (*reconciler)(nil)

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	quotas, pods, services, claims := core.ResourceQuotas(), core.Pods(), core.Services(), core.PersistentVolumeClaims()
	r := &reconciler{
		Setup: s, quotas: quotas.Lister(), pods: pods.Lister(), services: services.Lister(), claims: claims.Lister(),
		wanted: make(chan struct{}), kinds: map[schema.GroupResource]schema.GroupVersionResource{},
	}
	s.Watch(quotas.Informer(), controllers.On(func(old, now *corev1.ResourceQuota) {
		if now != nil && (old == nil || !quota.Same(now.Spec.Hard, old.Spec.Hard) || !quota.Same(now.Status.Hard, now.Spec.Hard)) {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	s.Watch(pods.Informer(), controllers.On(func(old, now *corev1.Pod) {
		switch {
		case now == nil:
			r.freed(quota.Pods, old.Namespace)
		case old != nil && r.quoted(now.Namespace) && (quota.ScopeChanged(old, now) || !quota.Same(quota.Usage(quota.Pods, old, s.Clock.Now()), quota.Usage(quota.Pods, now, s.Clock.Now()))):
			r.freed(quota.Pods, now.Namespace)
		}
	}))
	s.Watch(services.Informer(), controllers.On(func(old, now *corev1.Service) {
		switch {
		case now == nil:
			r.freed(quota.Services, old.Namespace)
		case old != nil && !quota.Same(quota.Usage(quota.Services, old, time.Time{}), quota.Usage(quota.Services, now, time.Time{})):
			r.freed(quota.Services, now.Namespace)
		}
	}))
	s.Watch(claims.Informer(), controllers.On(func(old, now *corev1.PersistentVolumeClaim) {
		switch {
		case now == nil:
			r.freed(quota.Claims, old.Namespace)
		case old != nil && r.quoted(now.Namespace) && (quota.ScopeChanged(old, now) || !quota.Same(quota.Usage(quota.Claims, old, time.Time{}), quota.Usage(quota.Claims, now, time.Time{}))):
			r.freed(quota.Claims, now.Namespace)
		}
	}))
	return r, nil
}

// quoted reports whether a namespace has quotas.
func (r *reconciler) quoted(namespace string) bool {
	list, err := r.quotas.ResourceQuotas(namespace).List(labels.Everything())
	return err == nil && len(list) > 0
}

// freed asks for a count of the quotas of a namespace that a kind takes from.
func (r *reconciler) freed(gr schema.GroupResource, namespace string) {
	list, err := r.quotas.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return // the lister reads memory: it does not fail
	}
	for _, q := range list {
		for name := range q.Spec.Hard {
			if quota.Covers(gr, name) {
				r.Queue.Add(controllers.KeyOf(q))
				break
			}
		}
	}
}

// Reconcile counts one quota.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	q, err := r.quotas.ResourceQuotas(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || q.DeletionTimestamp != nil {
		return 0, err
	}
	used, err := r.count(ctx, q)
	if err != nil {
		return 0, err
	}
	if quota.Same(q.Status.Hard, q.Spec.Hard) && quota.Same(q.Status.Used, used) {
		return recount, nil
	}
	out := q.DeepCopy()
	out.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: used}
	_, err = r.Client.CoreV1().ResourceQuotas(q.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return 0, controllers.ErrStale // admission has charged it meanwhile
	case apierrors.IsNotFound(err):
		return 0, nil
	}
	return recount, err
}
