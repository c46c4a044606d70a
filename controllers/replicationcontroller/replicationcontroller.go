package replicationcontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
)

var (
	replicationControllers = corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	pods                   = corev1.SchemeGroupVersion.WithResource("pods")
	kind                   = corev1.SchemeGroupVersion.WithKind("ReplicationController")
)

// Controller declares the ReplicationController controller.
func Controller() controllers.Controller {
	return controllers.Controller{
		Name:   "replicationcontroller-controller",
		Reads:  []schema.GroupVersionResource{replicationControllers, pods},
		Writes: []schema.GroupVersionResource{replicationControllers, pods},
		New:    build,
	}
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Core().V1().ReplicationControllers()
	k := &access{s: s, lister: informer.Lister()}
	r, err := controllers.NewReplicaReconciler(s, controllers.ReplicaKind{
		GVK: kind, Get: k.get, Live: k.live, UpdateStatus: k.updateStatus, InNamespace: k.inNamespace,
		Related: func(o *controllers.ReplicaOwner) []types.UID { return []types.UID{o.Object.GetUID()} },
	})
	if err != nil {
		return nil, err
	}
	s.Watch(informer.Informer(), controllers.Self(s.Queue))
	return r, nil
}

type access struct {
	s      *controllers.Setup
	lister corelisters.ReplicationControllerLister
}

func (a *access) get(key controllers.Key) (*controllers.ReplicaOwner, error) {
	rc, err := a.lister.ReplicationControllers(key.Namespace).Get(key.Name)
	if err != nil {
		return nil, err
	}
	return owner(rc), nil
}

func owner(rc *corev1.ReplicationController) *controllers.ReplicaOwner {
	selector := labels.SelectorFromSet(rc.Spec.Selector)
	if selector.Empty() {
		selector = labels.Nothing()
	}
	template := rc.Spec.Template
	if template == nil {
		template = &corev1.PodTemplateSpec{}
	}
	replicas := int32(1)
	if rc.Spec.Replicas != nil {
		replicas = *rc.Spec.Replicas
	}
	status := appsv1.ReplicaSetStatus{
		Replicas:             rc.Status.Replicas,
		FullyLabeledReplicas: rc.Status.FullyLabeledReplicas,
		ReadyReplicas:        rc.Status.ReadyReplicas,
		AvailableReplicas:    rc.Status.AvailableReplicas,
		ObservedGeneration:   rc.Status.ObservedGeneration,
	}
	for _, c := range rc.Status.Conditions {
		status.Conditions = append(status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return &controllers.ReplicaOwner{
		Object: rc, Replicas: replicas, Selector: selector, Template: template,
		MinReady: rc.Spec.MinReadySeconds, Status: status, NoTerminating: true,
	}
}

func (a *access) live(ctx context.Context, key controllers.Key) (metav1.Object, error) {
	return a.s.Client.CoreV1().ReplicationControllers(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

func (a *access) updateStatus(ctx context.Context, o *controllers.ReplicaOwner, status appsv1.ReplicaSetStatus) error {
	rc := o.Object.(*corev1.ReplicationController).DeepCopy()
	rc.Status = corev1.ReplicationControllerStatus{
		Replicas:             status.Replicas,
		FullyLabeledReplicas: status.FullyLabeledReplicas,
		ReadyReplicas:        status.ReadyReplicas,
		AvailableReplicas:    status.AvailableReplicas,
		ObservedGeneration:   status.ObservedGeneration,
	}
	for _, c := range status.Conditions {
		rc.Status.Conditions = append(rc.Status.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status,
			LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	_, err := a.s.Client.CoreV1().ReplicationControllers(rc.Namespace).UpdateStatus(ctx, rc, metav1.UpdateOptions{})
	return err
}

func (a *access) inNamespace(namespace string) []*controllers.ReplicaOwner {
	list, err := a.lister.ReplicationControllers(namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	out := make([]*controllers.ReplicaOwner, 0, len(list))
	for _, rc := range list {
		out = append(out, owner(rc))
	}
	return out
}
