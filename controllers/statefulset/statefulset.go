package statefulset

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

var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// Controller declares the StatefulSet controller.
func Controller() controllers.Controller {
	apps, core := appsv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	sets, revisions := apps.WithResource("statefulsets"), apps.WithResource("controllerrevisions")
	pods, claims := core.WithResource("pods"), core.WithResource("persistentvolumeclaims")
	return controllers.Controller{
		Name:    "statefulset-controller",
		Reads:   []schema.GroupVersionResource{sets, revisions, pods, claims},
		Writes:  []schema.GroupVersionResource{sets, revisions, pods, claims},
		Workers: 5,
		New:     build,
	}
}

type reconciler struct {
	*controllers.Setup
	sets      appslisters.StatefulSetLister
	claims    corelisters.PersistentVolumeClaimLister
	pods      cache.Indexer
	revisions controllers.Revisions
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	apps, core := s.Informers.Apps().V1(), s.Informers.Core().V1()
	for _, i := range []cache.SharedIndexInformer{core.Pods().Informer(), apps.ControllerRevisions().Informer()} {
		if err := controllers.IndexByController(i); err != nil {
			return nil, err
		}
	}
	r := &reconciler{
		Setup: s, sets: apps.StatefulSets().Lister(), claims: core.PersistentVolumeClaims().Lister(), pods: core.Pods().Informer().GetIndexer(),
		revisions: controllers.Revisions{Client: s.Client, Index: apps.ControllerRevisions().Informer().GetIndexer(), Kind: kind},
	}
	s.Watch(apps.StatefulSets().Informer(), controllers.Self(s.Queue))
	s.Watch(core.Pods().Informer(), controllers.On(r.podChanged))
	s.Need(apps.ControllerRevisions().Informer(), core.PersistentVolumeClaims().Informer())
	return r, nil
}

func (r *reconciler) podChanged(old, now *corev1.Pod) {
	for _, p := range []*corev1.Pod{old, now} {
		if p == nil {
			continue
		}
		if key, ok := controllers.OwnerKey(p, kind.Group, kind.Kind); ok {
			r.Queue.Add(key)
		}
	}
	if now == nil || metav1.GetControllerOfNoCopy(now) != nil || now.DeletionTimestamp != nil {
		return
	}
	sets, err := r.sets.StatefulSets(now.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, set := range sets {
		if selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector); err == nil && !selector.Empty() && selector.Matches(labels.Set(now.Labels)) {
			r.Queue.Add(controllers.KeyOf(set))
		}
	}
}

// Reconcile brings one set on.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	set, err := r.sets.StatefulSets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return 0, err // validation refuses such selectors
	}
	pods, err := r.claim(ctx, set, selector)
	if err != nil {
		return 0, err
	}
	v, err := r.versions(ctx, set)
	if err != nil {
		return 0, err
	}
	p := newPass(r, set, v, pods)
	workErr := p.run(ctx)
	if err := r.writeStatus(ctx, set, p); err != nil && !apierrors.IsNotFound(err) {
		return 0, errors.Join(workErr, err)
	}
	if workErr != nil {
		return 0, workErr
	}
	return p.wait, r.prune(ctx, set, v, pods)
}

// claim returns the set's pods: adopted ones must have a name of the set's.
func (r *reconciler) claim(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector) ([]*corev1.Pod, error) {
	c := controllers.Claim[*corev1.Pod]{
		Owner: set, OwnerGVK: kind, Selector: selector,
		Live: func(ctx context.Context) (metav1.Object, error) {
			return r.Client.AppsV1().StatefulSets(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, p *corev1.Pod, patch []byte) error {
			_, err := r.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
	ours := func(p *corev1.Pod) bool { return ordinalOf(set, p) >= 0 }
	var orphans []*corev1.Pod
	for _, p := range controllers.Orphans[*corev1.Pod](r.pods, set.Namespace) {
		if ours(p) {
			orphans = append(orphans, p)
		}
	}
	return c.Sort(ctx, controllers.Children[*corev1.Pod](r.pods, set.UID), orphans)
}

// versions are the revisions that pods may have now.
type versions struct {
	all             []*appsv1.ControllerRevision
	current, update *appsv1.ControllerRevision
	collisions      int32
}

func (r *reconciler) versions(ctx context.Context, set *appsv1.StatefulSet) (*versions, error) {
	v := &versions{all: r.revisions.List(set)}
	if set.Status.CollisionCount != nil {
		v.collisions = *set.Status.CollisionCount
	}
	var err error
	if v.update, err = r.revisions.Current(ctx, set, &set.Spec.Template, v.all, &v.collisions); err != nil {
		return nil, err
	}
	v.current = v.update
	for _, c := range v.all {
		if c.Name == set.Status.CurrentRevision {
			v.current = c
		}
	}
	return v, nil
}

// prune drops revisions that no pod has, beyond the history's limit.
func (r *reconciler) prune(ctx context.Context, set *appsv1.StatefulSet, v *versions, pods []*corev1.Pod) error {
	used := map[string]bool{v.current.Name: true, v.update.Name: true}
	for _, p := range pods {
		used[p.Labels[appsv1.StatefulSetRevisionLabel]] = true
	}
	limit := int32(10)
	if set.Spec.RevisionHistoryLimit != nil {
		limit = *set.Spec.RevisionHistoryLimit
	}
	return r.revisions.Prune(ctx, v.all, func(c *appsv1.ControllerRevision) bool { return used[c.Name] }, limit)
}
