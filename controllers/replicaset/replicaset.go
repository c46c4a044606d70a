package replicaset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/controllers"
)

var (
	replicaSets = appsv1.SchemeGroupVersion.WithResource("replicasets")
	pods        = corev1.SchemeGroupVersion.WithResource("pods")
	kind        = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
)

// Controller declares the ReplicaSet controller.
func Controller() controllers.Controller {
	return controllers.Controller{
		Name:   "replicaset-controller",
		Reads:  []schema.GroupVersionResource{replicaSets, pods},
		Writes: []schema.GroupVersionResource{replicaSets, pods},
		New:    build,
	}
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	sets := s.Informers.Apps().V1().ReplicaSets()
	if err := controllers.IndexByController(sets.Informer()); err != nil {
		return nil, err
	}
	k := &access{s: s, lister: sets.Lister(), index: sets.Informer().GetIndexer()}
	r, err := controllers.NewReplicaReconciler(s, controllers.ReplicaKind{
		GVK: kind, Get: k.get, Live: k.live, UpdateStatus: k.updateStatus, InNamespace: k.inNamespace, Related: k.related,
	})
	if err != nil {
		return nil, err
	}
	s.Watch(sets.Informer(), controllers.Self(s.Queue))
	return r, nil
}

type access struct {
	s      *controllers.Setup
	lister appslisters.ReplicaSetLister
	index  cache.Indexer
}

func (a *access) get(key controllers.Key) (*controllers.ReplicaOwner, error) {
	rs, err := a.lister.ReplicaSets(key.Namespace).Get(key.Name)
	if err != nil {
		return nil, err
	}
	return owner(rs), nil
}

func owner(rs *appsv1.ReplicaSet) *controllers.ReplicaOwner {
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil || selector.Empty() {
		selector = labels.Nothing() // validation refuses such selectors; match nothing rather than everything
	}
	replicas := int32(1)
	if rs.Spec.Replicas != nil {
		replicas = *rs.Spec.Replicas
	}
	return &controllers.ReplicaOwner{
		Object: rs, Replicas: replicas, Selector: selector, Template: &rs.Spec.Template,
		MinReady: rs.Spec.MinReadySeconds, Status: rs.Status,
	}
}

func (a *access) live(ctx context.Context, key controllers.Key) (metav1.Object, error) {
	return a.s.Client.AppsV1().ReplicaSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func (a *access) updateStatus(ctx context.Context, o *controllers.ReplicaOwner, status appsv1.ReplicaSetStatus) error {
	rs := o.Object.(*appsv1.ReplicaSet).DeepCopy()
	rs.Status = status
	_, err := a.s.Client.AppsV1().ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
	return err
}

func (a *access) inNamespace(namespace string) []*controllers.ReplicaOwner {
	sets, err := a.lister.ReplicaSets(namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	out := make([]*controllers.ReplicaOwner, 0, len(sets))
	for _, rs := range sets {
		out = append(out, owner(rs))
	}
	return out
}

// related returns the ReplicaSets of the same Deployment.
func (a *access) related(o *controllers.ReplicaOwner) []types.UID {
	ref := metav1.GetControllerOfNoCopy(o.Object)
	if ref == nil {
		return []types.UID{o.Object.GetUID()}
	}
	var out []types.UID
	for _, rs := range controllers.Children[*appsv1.ReplicaSet](a.index, ref.UID) {
		out = append(out, rs.UID)
	}
	return out
}
