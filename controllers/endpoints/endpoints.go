package endpoints

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice/util"

	"github.com/periplus/periplus/controllers"
)

const (
	managedByLabel = "endpoints.kubernetes.io/managed-by"
	managedBy      = "endpoint-controller"
)

// Controller declares the Endpoints controller.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	return controllers.Controller{
		Name:   "endpoints-controller",
		Reads:  []schema.GroupVersionResource{core.WithResource("services"), core.WithResource("pods"), core.WithResource("endpoints")},
		Writes: []schema.GroupVersionResource{core.WithResource("endpoints")},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	services corelisters.ServiceLister
	pods     corelisters.PodLister
	lister   corelisters.EndpointsLister
	triggers *util.TriggerTimeTracker
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	r := &reconciler{
		Setup: s, services: core.Services().Lister(), pods: core.Pods().Lister(), lister: core.Endpoints().Lister(),
		triggers: util.NewTriggerTimeTracker(),
	}
	s.Watch(core.Services().Informer(), controllers.Self(s.Queue))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	s.Watch(core.Endpoints().Informer(), controllers.On(func(old, now *corev1.Endpoints) {
		// One that appears may be left over from a Service that is gone; one that
		// somebody deleted has to come back.
		switch {
		case old == nil && now.Labels[managedByLabel] == managedBy:
			s.Queue.Add(controllers.KeyOf(now))
		case now == nil:
			s.Queue.Add(controllers.KeyOf(old))
		}
	}))
	return r, nil
}

func (r *reconciler) podChanged(old, now *corev1.Pod) {
	var before, after any
	if old != nil {
		before = old
	}
	if now != nil {
		after = now
	}
	names, err := util.GetServicesToUpdate(r.services, util.GetPodUpdateProjectionKey(before, after))
	if err != nil {
		return
	}
	for name := range names {
		if namespace, name, err := cache.SplitMetaNamespaceKey(name); err == nil {
			r.Queue.Add(controllers.Key{Namespace: namespace, Name: name})
		}
	}
}

// Reconcile writes the Service's Endpoints object if it is not what it should be.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	current, err := r.lister.Endpoints(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	exists := err == nil
	service, err := r.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		r.triggers.DeleteService(key.Namespace, key.Name)
		if !exists {
			return 0, nil
		}
		err := r.Client.CoreV1().Endpoints(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return 0, err
	}
	if err != nil || service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return 0, err
	}
	pods, err := r.pods.Pods(key.Namespace).List(labels.Set(service.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return 0, err
	}
	trigger := r.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	if !exists {
		current = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace, Labels: service.Labels}}
	}
	wanted := desired(service, pods, current)
	if exists && equality.Semantic.DeepEqual(current.Subsets, wanted.Subsets) &&
		equality.Semantic.DeepEqual(current.Labels, wanted.Labels) &&
		equality.Semantic.DeepEqual(current.Annotations, wanted.Annotations) {
		return 0, nil
	}
	if trigger.IsZero() {
		delete(wanted.Annotations, corev1.EndpointsLastChangeTriggerTime)
	} else {
		setAnnotation(wanted, corev1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano))
	}
	api := r.Client.CoreV1().Endpoints(key.Namespace)
	if exists {
		_, err = api.Update(ctx, wanted, metav1.UpdateOptions{})
	} else {
		_, err = api.Create(ctx, wanted, metav1.CreateOptions{})
	}
	switch {
	case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return 0, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return 0, controllers.ErrStale
	case exists:
		r.Recorder.Eventf(wanted, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "Failed to update endpoint %v: %v", key, err)
	default:
		r.Recorder.Eventf(wanted, corev1.EventTypeWarning, "FailedToCreateEndpoint", "Failed to create endpoint for service %v: %v", key, err)
	}
	return 0, err
}
