package horizontalpodautoscaler

import (
	"context"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/controllers"
)

// Controller declares the horizontal pod autoscaler.
func Controller() controllers.Controller {
	autoscalers := autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")
	scales := schema.GroupVersionResource{Group: "*", Version: "*", Resource: "*/scale"}
	return controllers.Controller{
		Name: "horizontal-pod-autoscaler-controller",
		Reads: []schema.GroupVersionResource{
			autoscalers, corev1.SchemeGroupVersion.WithResource("pods"), scales,
			{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"},
			{Group: "custom.metrics.k8s.io", Version: "*", Resource: "*"},
			{Group: "external.metrics.k8s.io", Version: "v1beta1", Resource: "*"},
		},
		Writes: []schema.GroupVersionResource{autoscalers, scales},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	autoscalers autoscalinglisters.HorizontalPodAutoscalerLister
	pods        corelisters.PodLister
	// api reaches scales and metrics; it is made for the first autoscaler.
	api func() (*api, error)

	mu        sync.Mutex // guards what follows
	histories map[controllers.Key]*history
	selectors map[controllers.Key]labels.Selector
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	config := s.Config()
	if config == nil {
		return nil, controllers.ErrNotConfigured
	}
	autoscalers, pods := s.Informers.Autoscaling().V2().HorizontalPodAutoscalers(), s.Informers.Core().V1().Pods()
	r := &reconciler{
		Setup: s, autoscalers: autoscalers.Lister(), pods: pods.Lister(),
		api:       sync.OnceValues(func() (*api, error) { return newAPI(config) }),
		histories: map[controllers.Key]*history{}, selectors: map[controllers.Key]labels.Selector{},
	}
	s.Need(pods.Informer())
	// The controller's own reports wake nobody: there would be no end.
	s.Watch(autoscalers.Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: r.wake,
		UpdateFunc: func(before, now any) {
			a, ok := before.(*autoscalingv2.HorizontalPodAutoscaler)
			b, also := now.(*autoscalingv2.HorizontalPodAutoscaler)
			if !ok || !also || a.UID != b.UID || !equality.Semantic.DeepEqual(&a.Spec, &b.Spec) {
				r.wake(now)
			}
		},
		DeleteFunc: r.wake,
	})
	return r, nil
}

func (r *reconciler) wake(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if a, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
		r.Queue.Add(controllers.KeyOf(a))
	}
}

// Reconcile looks at one autoscaler, and again after a while whatever came of it:
// what went wrong is in its conditions and events.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	a, err := r.autoscalers.HorizontalPodAutoscalers(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		r.forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	api, err := r.api()
	if err != nil {
		return 0, err
	}
	s := &sight{
		reconciler: r, api: api, ctx: ctx, key: key, hpa: a.DeepCopy(), before: &a.Status,
		history: r.historyOf(key), now: r.Clock.Now(),
	}
	if err := s.reconcile(); err != nil {
		r.Log.Debug("autoscaler is not satisfied", base.KeyKey, key.String(), base.KeyError, err)
	}
	return r.Options.Autoscaling.Period, nil
}

func (r *reconciler) historyOf(key controllers.Key) *history {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.histories[key]
	if h == nil {
		h = &history{}
		r.histories[key] = h
	}
	return h
}

func (r *reconciler) forget(key controllers.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.histories, key)
	delete(r.selectors, key)
}
