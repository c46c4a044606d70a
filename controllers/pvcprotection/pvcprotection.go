package pvcprotection

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/controllers"
)

// finalizer is what keeps a claim.
const finalizer = "kubernetes.io/pvc-protection"

// Controller declares the protection of claims.
func Controller() controllers.Controller {
	core := corev1.SchemeGroupVersion
	claims, pods := core.WithResource("persistentvolumeclaims"), core.WithResource("pods")
	return controllers.Controller{
		Name: "persistentvolumeclaim-protection-controller", Workers: 1,
		Reads: []schema.GroupVersionResource{claims, pods}, Writes: []schema.GroupVersionResource{claims}, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	claims corelisters.PersistentVolumeClaimLister
	pods   corelisters.PodLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core := s.Informers.Core().V1()
	r := &reconciler{Setup: s, claims: core.PersistentVolumeClaims().Lister(), pods: core.Pods().Lister()}
	s.Watch(core.PersistentVolumeClaims().Informer(), controllers.On(func(_, now *corev1.PersistentVolumeClaim) {
		if now != nil && (now.DeletionTimestamp != nil || !slices.Contains(now.Finalizers, finalizer)) {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	s.Watch(core.Pods().Informer(), controllers.On(func(old, now *corev1.Pod) {
		// Only the end of a pod frees a claim.
		if old == nil || now != nil && now.UID == old.UID && !controllers.PodFinished(now) {
			return
		}
		for i := range old.Spec.Volumes {
			name := claimName(old, &old.Spec.Volumes[i])
			if name == "" {
				continue
			}
			if c, err := r.claims.PersistentVolumeClaims(old.Namespace).Get(name); err == nil && c.DeletionTimestamp != nil {
				s.Queue.Add(controllers.Key{Namespace: old.Namespace, Name: name})
			}
		}
	}))
	return r, nil
}

func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

// Reconcile takes the finalizer off a claim that may go, or puts it on.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	claim, err := r.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	has := slices.Contains(claim.Finalizers, finalizer)
	out := claim.DeepCopy()
	switch {
	case claim.DeletionTimestamp == nil && !has:
		out.Finalizers = append(out.Finalizers, finalizer)
	case claim.DeletionTimestamp != nil && has:
		used, err := r.used(ctx, claim)
		if err != nil || used {
			return 0, err
		}
		out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == finalizer })
	default:
		return 0, nil
	}
	_, err = r.Client.CoreV1().PersistentVolumeClaims(out.Namespace).Update(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// used looks into the cache, and before it says no, at the API: data hangs on it.
func (r *reconciler) used(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	cached, err := r.pods.Pods(claim.Namespace).List(labels.Everything())
	if err != nil {
		return false, err
	}
	for _, p := range cached {
		if uses(p, claim.Name) {
			return true, nil
		}
	}
	live, err := r.Client.CoreV1().Pods(claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range live.Items {
		if uses(&live.Items[i], claim.Name) {
			return true, nil
		}
	}
	return false, nil
}

// uses reports whether a pod that has a node uses the claim, and has not ended.
func uses(pod *corev1.Pod, claim string) bool {
	if pod.Spec.NodeName == "" || controllers.PodFinished(pod) {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return claimName(pod, &v) == claim })
}
