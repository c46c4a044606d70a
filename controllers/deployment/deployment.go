package deployment

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/controllers"
)

var (
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
	replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")
	pods        = corev1.SchemeGroupVersion.WithResource("pods")

	kind = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// Controller declares the Deployment controller.
func Controller() controllers.Controller {
	return controllers.Controller{
		Name:   "deployment-controller",
		Reads:  []schema.GroupVersionResource{deployments, replicaSets, pods},
		Writes: []schema.GroupVersionResource{deployments, replicaSets},
		New:    build,
	}
}

type reconciler struct {
	*controllers.Setup
	lister appslisters.DeploymentLister
	sets   cache.Indexer
	setsOf appslisters.ReplicaSetLister
	pods   cache.Indexer
	expect *controllers.Expectations
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	apps := s.Informers.Apps().V1()
	podInformer := s.Informers.Core().V1().Pods().Informer()
	setInformer := apps.ReplicaSets().Informer()
	for _, i := range []cache.SharedIndexInformer{podInformer, setInformer} {
		if err := controllers.IndexByController(i); err != nil {
			return nil, err
		}
	}
	r := &reconciler{
		Setup: s, lister: apps.Deployments().Lister(), setsOf: apps.ReplicaSets().Lister(),
		sets: setInformer.GetIndexer(), pods: podInformer.GetIndexer(),
		expect: controllers.NewExpectations(s.Clock),
	}
	s.Watch(apps.Deployments().Informer(), controllers.Self(s.Queue))
	s.Watch(setInformer, controllers.On(r.setChanged))
	s.Watch(podInformer, controllers.On(r.podChanged))
	return r, nil
}

func (r *reconciler) setChanged(old, now *appsv1.ReplicaSet) {
	var before, after controllers.Key
	var hadOwner, hasOwner bool
	if old != nil {
		before, hadOwner = controllers.OwnerKey(old, kind.Group, kind.Kind)
	}
	if now != nil {
		after, hasOwner = controllers.OwnerKey(now, kind.Group, kind.Kind)
	}
	if hadOwner && (!hasOwner || before != after) {
		r.expect.Gone(before, old.UID)
		r.Queue.Add(before)
	}
	switch {
	case hasOwner:
		r.Queue.Add(after)
	case now == nil || metav1.GetControllerOfNoCopy(now) != nil || now.DeletionTimestamp != nil:
	case old == nil, hadOwner, !labels.Equals(old.Labels, now.Labels):
		r.offer(now)
	}
}

// offer wakes the Deployments that could adopt an orphaned ReplicaSet.
func (r *reconciler) offer(rs *appsv1.ReplicaSet) {
	list, err := r.lister.Deployments(rs.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, d := range list {
		if selector := selectorOf(d); selector.Matches(labels.Set(rs.Labels)) {
			r.Queue.Add(controllers.KeyOf(d))
		}
	}
}

// podChanged wakes a Deployment that waits for the pods of its last version to be
// gone (strategy Recreate).
func (r *reconciler) podChanged(old, now *corev1.Pod) {
	if old == nil || (now != nil && !(controllers.PodFinished(now) && !controllers.PodFinished(old))) {
		return
	}
	set, ok := controllers.OwnerKey(old, kind.Group, "ReplicaSet")
	if !ok {
		return
	}
	rs, err := r.setsOf.ReplicaSets(set.Namespace).Get(set.Name)
	if err != nil {
		return
	}
	key, ok := controllers.OwnerKey(rs, kind.Group, kind.Kind)
	if !ok {
		return
	}
	if d, err := r.lister.Deployments(key.Namespace).Get(key.Name); err == nil && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		r.Queue.Add(key)
	}
}

func selectorOf(d *appsv1.Deployment) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() {
		return labels.Nothing() // validation refuses such selectors
	}
	return selector
}

// Reconcile takes one step of the rollout. The events of the ReplicaSets that it
// changed lead to the next.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	cached, err := r.lister.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		r.expect.Forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	children := controllers.Children[*appsv1.ReplicaSet](r.sets, cached.UID)
	known := make(map[types.UID]bool, len(children))
	for _, rs := range children {
		known[rs.UID] = rs.DeletionTimestamp != nil
	}
	if wait := r.expect.Pending(key, known); wait > 0 {
		return wait, nil
	}
	d := cached.DeepCopy()
	sets, err := r.claim(ctx, d, children)
	if err != nil {
		return 0, err
	}
	roll := &rollout{reconciler: r, key: key, d: d, cached: cached, sets: sets}
	return roll.step(ctx)
}

func (r *reconciler) claim(ctx context.Context, d *appsv1.Deployment, children []*appsv1.ReplicaSet) ([]*appsv1.ReplicaSet, error) {
	claim := controllers.Claim[*appsv1.ReplicaSet]{
		Owner: d, OwnerGVK: kind, Selector: selectorOf(d),
		Live: func(ctx context.Context) (metav1.Object, error) {
			return r.Client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, rs *appsv1.ReplicaSet, patch []byte) error {
			_, err := r.Client.AppsV1().ReplicaSets(rs.Namespace).Patch(ctx, rs.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
	return claim.Sort(ctx, children, controllers.Orphans[*appsv1.ReplicaSet](r.sets, d.Namespace))
}

// write stores the Deployment's status and revision if they differ from what the
// cache has.
func (roll *rollout) write(ctx context.Context, status appsv1.DeploymentStatus) error {
	d, cached := roll.d, roll.cached
	revised := d.Annotations[revisionAnnotation] != cached.Annotations[revisionAnnotation]
	if !revised && equality.Semantic.DeepEqual(&cached.Status, &status) {
		return nil
	}
	d.Status = status
	updated, err := roll.Client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	if err != nil || !revised || updated.Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
		return err
	}
	// A server that takes nothing but the status through the subresource.
	patch := `{"metadata":{"annotations":{"` + revisionAnnotation + `":"` + d.Annotations[revisionAnnotation] + `"}}}`
	_, err = roll.Client.AppsV1().Deployments(d.Namespace).Patch(ctx, d.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
