package pvprotection

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/controllers"
)

// finalizer is what keeps a volume.
const finalizer = "kubernetes.io/pv-protection"

// Controller declares the protection of volumes.
func Controller() controllers.Controller {
	volumes := []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("persistentvolumes")}
	return controllers.Controller{Name: "persistentvolume-protection-controller", Workers: 1, Reads: volumes, Writes: volumes, New: build}
}

type reconciler struct {
	*controllers.Setup
	volumes corelisters.PersistentVolumeLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Core().V1().PersistentVolumes()
	s.Watch(informer.Informer(), controllers.On(func(_, now *corev1.PersistentVolume) {
		if now != nil && (now.DeletionTimestamp == nil) != slices.Contains(now.Finalizers, finalizer) {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	return &reconciler{s, informer.Lister()}, nil
}

// Reconcile takes the finalizer off a volume that may go, or puts it on.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	pv, err := r.volumes.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	has := slices.Contains(pv.Finalizers, finalizer)
	out := pv.DeepCopy()
	switch {
	case pv.DeletionTimestamp == nil && !has:
		out.Finalizers = append(out.Finalizers, finalizer)
	case pv.DeletionTimestamp != nil && has && pv.Status.Phase != corev1.VolumeBound:
		out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == finalizer })
	default:
		return 0, nil
	}
	_, err = r.Client.CoreV1().PersistentVolumes().Update(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}
