package endpointslice

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	slices "k8s.io/endpointslice"
	"k8s.io/endpointslice/topologycache"
	"k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/journey"
)

// managedBy is the label value on the slices that are this controller's.
const managedBy = "endpointslice-controller.k8s.io"

// Controller declares the EndpointSlice controller.
func Controller() controllers.Controller {
	core, discovery := corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion
	return controllers.Controller{
		Name: "endpointslice-controller",
		Reads: []schema.GroupVersionResource{
			core.WithResource("services"), core.WithResource("pods"), core.WithResource("nodes"), discovery.WithResource("endpointslices"),
		},
		Writes: []schema.GroupVersionResource{discovery.WithResource("endpointslices")},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	services corelisters.ServiceLister
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	lister   discoverylisters.EndpointSliceLister

	slices   *slices.Reconciler
	tracker  *util.EndpointSliceTracker // own writes that the cache has not shown yet
	triggers *util.TriggerTimeTracker
	topology *topologycache.TopologyCache
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	slice := s.Informers.Discovery().V1().EndpointSlices()
	r := &reconciler{
		Setup:    s,
		services: core.Services().Lister(), pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), lister: slice.Lister(),
		tracker:  util.NewEndpointSliceTracker(),
		triggers: util.NewTriggerTimeTracker(),
		topology: topologycache.NewTopologyCache(),
	}
	r.slices = slices.NewReconciler(s.Client, r.nodes, s.Options.EndpointsPerSlice, r.tracker, r.topology, s.Recorder, managedBy,
		slices.WithPreferSameTrafficDistributionEnabled(true))
	s.Watch(core.Services().Informer(), controllers.Self(s.Queue))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	s.Watch(core.Nodes().Informer(), controllers.On(r.nodeChanged))
	s.Watch(slice.Informer(), controllers.On(r.sliceChanged))
	return r, nil
}

// podChanged wakes the Services whose endpoints the change may touch.
func (r *reconciler) podChanged(old, now *corev1.Pod) {
	var before, after any // a typed nil would not compare equal to nil
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

// nodeChanged keeps the zones' sizes, which topology hints are computed from.
func (r *reconciler) nodeChanged(old, now *corev1.Node) {
	if old != nil && now != nil && maps.Equal(old.Labels, now.Labels) && cpu(old).Equal(*cpu(now)) && conditions.NodeReady(old) == conditions.NodeReady(now) {
		return
	}
	nodes, err := r.nodes.List(labels.Everything())
	if err != nil {
		return
	}
	r.topology.SetNodes(klog.Background(), nodes)
	for _, key := range r.topology.GetOverloadedServices() {
		if namespace, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
			r.Queue.Add(controllers.Key{Namespace: namespace, Name: name})
		}
	}
}

func cpu(n *corev1.Node) *resource.Quantity { return n.Status.Allocatable.Cpu() }

// sliceChanged wakes the Service when somebody else changed its slices.
func (r *reconciler) sliceChanged(old, now *discoveryv1.EndpointSlice) {
	switch {
	case now == nil:
		if old.Labels[discoveryv1.LabelManagedBy] == managedBy && r.tracker.Has(old) && !r.tracker.HandleDeletion(old) {
			r.enqueue(old)
		}
	case old != nil && old.Labels[discoveryv1.LabelServiceName] != now.Labels[discoveryv1.LabelServiceName],
		old != nil && r.slices.ManagedByChanged(old, now):
		r.enqueue(old)
		r.enqueue(now)
	case r.slices.ManagedByController(now) && r.tracker.ShouldSync(now):
		r.enqueue(now)
	}
}

func (r *reconciler) enqueue(slice *discoveryv1.EndpointSlice) {
	if name := slice.Labels[discoveryv1.LabelServiceName]; name != "" {
		r.Queue.Add(controllers.Key{Namespace: slice.Namespace, Name: name})
	}
}

// Reconcile makes the Service's slices name the pods that it selects.
func (r *reconciler) Reconcile(_ context.Context, key controllers.Key) (time.Duration, error) {
	service, err := r.services.Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		// The slices are owned by the Service; the garbage collector takes them.
		r.triggers.DeleteService(key.Namespace, key.Name)
		r.slices.DeleteService(key.Namespace, key.Name)
		r.tracker.DeleteService(key.Namespace, key.Name)
		return 0, nil
	}
	if err != nil || service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return 0, err
	}
	pods, err := r.pods.Pods(key.Namespace).List(labels.Set(service.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return 0, err
	}
	existing, err := r.lister.EndpointSlices(key.Namespace).List(labels.Set{
		discoveryv1.LabelServiceName: key.Name,
		discoveryv1.LabelManagedBy:   managedBy,
	}.AsSelectorPreValidated())
	if err != nil {
		return 0, err
	}
	kept := existing[:0:0]
	for _, slice := range existing {
		if slice.DeletionTimestamp == nil {
			kept = append(kept, slice)
		}
	}
	if r.tracker.StaleSlices(service, kept) {
		return 0, controllers.ErrStale
	}
	start := time.Now()
	trigger := r.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	if err := r.slices.Reconcile(klog.Background(), service, pods, kept, trigger); err != nil {
		if !apierrors.IsConflict(err) {
			r.Recorder.Eventf(service, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
				"Error updating Endpoint Slices for Service %s/%s: %v", key.Namespace, key.Name, err)
		}
		return 0, err
	}
	r.record(service, pods, kept, start)
	return 0, nil
}

// record notes in the journeys of the pods that became ready that they are now
// published.
func (r *reconciler) record(service *corev1.Service, pods []*corev1.Pod, before []*discoveryv1.EndpointSlice, start time.Time) {
	was := map[types.UID]bool{}
	for _, slice := range before {
		for i := range slice.Endpoints {
			if e := &slice.Endpoints[i]; e.TargetRef != nil && e.Conditions.Ready != nil && *e.Conditions.Ready {
				was[e.TargetRef.UID] = true
			}
		}
	}
	for _, pod := range pods {
		if !was[pod.UID] && conditions.PodReady(pod) && util.ShouldPodBeInEndpoints(pod, false) {
			r.Span(journey.StepPublished+service.Name+" updated", "Pod", pod, start, journey.AttrService, service.Name)
		}
	}
}
