package ephemeralvolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/journey"
)

// Controller declares the maker of claims for ephemeral volumes.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	pods, claims := core.WithResource("pods"), core.WithResource("persistentvolumeclaims")
	return controllers.Controller{
		Name: "ephemeral-volume-controller", Workers: 5,
		Reads: []schema.GroupVersionResource{pods, claims}, Writes: []schema.GroupVersionResource{claims}, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	pods   corelisters.PodLister
	claims corelisters.PersistentVolumeClaimLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	s.Watch(core.Pods().Informer(), controllers.On(func(old, now *corev1.Pod) {
		if old == nil && now.DeletionTimestamp == nil && has(now) {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	s.Watch(core.PersistentVolumeClaims().Informer(), controllers.On(func(old, now *corev1.PersistentVolumeClaim) {
		if now == nil { // somebody deleted it under its pod
			if key, ok := controllers.OwnerKey(old, "", "Pod"); ok {
				s.Queue.Add(key)
			}
		}
	}))
	return &reconciler{s, core.Pods().Lister(), core.PersistentVolumeClaims().Lister()}, nil
}

func has(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Ephemeral != nil {
			return true
		}
	}
	return false
}

// Reconcile makes the missing claims of a pod.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	pod, err := r.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || pod.DeletionTimestamp != nil || controllers.PodFinished(pod) {
		return 0, err
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil || v.Ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		if err := r.ensure(ctx, pod, v); err != nil {
			r.Recorder.Eventf(pod, corev1.EventTypeWarning, "FailedBinding", "ephemeral volume %s: %v", v.Name, err)
			return 0, fmt.Errorf("pod %s, ephemeral volume %s: %w", key, v.Name, err)
		}
	}
	return 0, nil
}

func (r *reconciler) ensure(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) error {
	name := ephemeral.VolumeClaimName(pod, v)
	have, err := r.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
	if err == nil {
		return ephemeral.VolumeIsForPod(pod, have)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	template := v.Ephemeral.VolumeClaimTemplate
	yes := true
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: pod.Namespace, Annotations: template.Annotations, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: template.Spec,
	}
	claim = claim.DeepCopy()
	journey.Inherit(claim, pod)
	_, err = r.Client.CoreV1().PersistentVolumeClaims(pod.Namespace).Create(ctx, claim, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return controllers.ErrStale
	}
	if err != nil {
		return fmt.Errorf("create PVC %s: %w", name, err)
	}
	return nil
}
