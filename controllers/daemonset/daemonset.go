package daemonset

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/controllers"
)

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// Controller declares the DaemonSet controller.
func Controller() controllers.Controller {
	apps, core := appsv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	sets, revisions, pods := apps.WithResource("daemonsets"), apps.WithResource("controllerrevisions"), core.WithResource("pods")
	return controllers.Controller{
		Name:    "daemonset-controller",
		Reads:   []schema.GroupVersionResource{sets, revisions, pods, core.WithResource("nodes")},
		Writes:  []schema.GroupVersionResource{sets, revisions, pods},
		Workers: 2,
		New:     build,
	}
}

type reconciler struct {
	*controllers.Setup
	sets      appslisters.DaemonSetLister
	nodes     corelisters.NodeLister
	pods      cache.Indexer
	revisions controllers.Revisions
	expect    *controllers.Expectations
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	apps, core := s.Informers.Apps().V1(), s.Informers.Core().V1()
	for _, i := range []cache.SharedIndexInformer{core.Pods().Informer(), apps.ControllerRevisions().Informer()} {
		if err := controllers.IndexByController(i); err != nil {
			return nil, err
		}
	}
	r := &reconciler{
		Setup: s, sets: apps.DaemonSets().Lister(), nodes: core.Nodes().Lister(), pods: core.Pods().Informer().GetIndexer(),
		expect: controllers.NewExpectations(s.Clock),
		revisions: controllers.Revisions{
			Client: s.Client, Index: apps.ControllerRevisions().Informer().GetIndexer(), Kind: kind, HashLabel: appsv1.DefaultDaemonSetUniqueLabelKey,
		},
	}
	s.Watch(apps.DaemonSets().Informer(), controllers.Self(s.Queue))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	s.Watch(core.Nodes().Informer(), controllers.On(r.nodeChanged))
	s.Need(apps.ControllerRevisions().Informer())
	return r, nil
}

func (r *reconciler) podChanged(old, now *corev1.Pod) {
	if now == nil || old != nil && old.UID != now.UID {
		if key, ok := controllers.OwnerKey(old, kind.Group, kind.Kind); ok {
			r.expect.Gone(key, old.UID)
			r.Queue.Add(key)
		}
	}
	if now == nil {
		return
	}
	if key, ok := controllers.OwnerKey(now, kind.Group, kind.Kind); ok {
		r.Queue.Add(key)
		return
	}
	if metav1.GetControllerOfNoCopy(now) == nil && now.DeletionTimestamp == nil {
		r.wake(func(ds *appsv1.DaemonSet) bool {
			selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
			return err == nil && ds.Namespace == now.Namespace && !selector.Empty() && selector.Matches(labels.Set(now.Labels))
		})
	}
}

// nodeChanged wakes the sets for which a node's labels or taints may matter.
func (r *reconciler) nodeChanged(old, now *corev1.Node) {
	if old != nil && now != nil && sameForPods(old, now) {
		return
	}
	r.wake(func(ds *appsv1.DaemonSet) bool {
		if old == nil || now == nil {
			return true
		}
		ran, runs := fits(ds, old), fits(ds, now)
		return ran != runs
	})
}

func (r *reconciler) wake(concerned func(*appsv1.DaemonSet) bool) {
	list, err := r.sets.List(labels.Everything())
	if err != nil {
		return
	}
	for _, ds := range list {
		if concerned(ds) {
			r.Queue.Add(controllers.KeyOf(ds))
		}
	}
}

// Reconcile brings one set on.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	ds, err := r.sets.DaemonSets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		r.expect.Forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil || selector.Empty() {
		if err == nil {
			r.Recorder.Eventf(ds, corev1.EventTypeWarning, "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required.")
		}
		return 0, err
	}
	if ds.DeletionTimestamp != nil {
		return 0, nil
	}
	children := controllers.Children[*corev1.Pod](r.pods, ds.UID)
	cached := make(map[types.UID]bool, len(children))
	for _, p := range children {
		cached[p.UID] = p.DeletionTimestamp != nil
	}
	if wait := r.expect.Pending(key, cached); wait > 0 {
		return wait, nil
	}
	pods, err := r.claim(ctx, ds, selector, children)
	if err != nil {
		return 0, err
	}
	p, err := r.newPass(ctx, ds, pods)
	if err != nil {
		return 0, err
	}
	workErr := p.run(ctx)
	if err := p.writeStatus(ctx); err != nil && !apierrors.IsNotFound(err) {
		return 0, errors.Join(workErr, err)
	}
	if workErr != nil {
		return 0, workErr
	}
	return p.wait, p.prune(ctx)
}

func (r *reconciler) claim(ctx context.Context, ds *appsv1.DaemonSet, selector labels.Selector, children []*corev1.Pod) ([]*corev1.Pod, error) {
	c := controllers.Claim[*corev1.Pod]{
		Owner: ds, OwnerGVK: kind, Selector: selector,
		Live: func(ctx context.Context) (metav1.Object, error) {
			return r.Client.AppsV1().DaemonSets(ds.Namespace).Get(ctx, ds.Name, metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, p *corev1.Pod, patch []byte) error {
			_, err := r.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
	return c.Sort(ctx, children, controllers.Orphans[*corev1.Pod](r.pods, ds.Namespace))
}
