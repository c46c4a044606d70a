package persistentvolume

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/controllers"
)

var (
	volumes = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	claims  = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	classes = storagev1.SchemeGroupVersion.WithResource("storageclasses")
)

// defaultClass marks the class of claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// Controller declares the binder.
func Controller() controllers.Controller {
	return controllers.Controller{
		Name:    "persistentvolume-binder-controller",
		Reads:   []schema.GroupVersionResource{volumes, claims, classes},
		Writes:  []schema.GroupVersionResource{volumes, claims},
		Workers: 2,
		New:     build,
	}
}

type reconciler struct {
	*controllers.Setup
	volumes corelisters.PersistentVolumeLister
	claims  corelisters.PersistentVolumeClaimLister
	classes storagelisters.StorageClassLister
	waiting sync.Map // UIDs of claims whose journey says that they wait for a pod
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
	r := &reconciler{
		Setup: s, volumes: core.PersistentVolumes().Lister(), claims: core.PersistentVolumeClaims().Lister(), classes: storage.StorageClasses().Lister(),
	}
	s.Watch(core.PersistentVolumes().Informer(), controllers.On(r.volumeChanged))
	s.Watch(core.PersistentVolumeClaims().Informer(), controllers.On(r.claimChanged))
	s.Watch(storage.StorageClasses().Informer(), controllers.On(r.classChanged))
	return r, nil
}

func (r *reconciler) volumeChanged(old, now *corev1.PersistentVolume) {
	pv := now
	if pv == nil {
		pv = old
	} else {
		r.Queue.Add(controllers.KeyOf(now))
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		r.Queue.Add(controllers.Key{Namespace: ref.Namespace, Name: ref.Name})
		return
	}
	// A volume that is free may be what a claim waits for.
	if now != nil && now.Status.Phase == corev1.VolumeAvailable && (old == nil || old.Status.Phase != now.Status.Phase || old.ResourceVersion == now.ResourceVersion) {
		r.wakeClaims(func(c *corev1.PersistentVolumeClaim) bool {
			return volume.GetPersistentVolumeClaimClass(c) == now.Spec.StorageClassName
		})
	}
}

func (r *reconciler) claimChanged(old, now *corev1.PersistentVolumeClaim) {
	c := now
	if c == nil {
		c = old
	} else {
		r.Queue.Add(controllers.KeyOf(now))
	}
	if now == nil || c.Spec.VolumeName != "" {
		r.waiting.Delete(c.UID)
	}
	if c.Spec.VolumeName != "" {
		r.Queue.Add(controllers.Key{Name: c.Spec.VolumeName})
	}
}

func (r *reconciler) classChanged(_, now *storagev1.StorageClass) {
	if now == nil {
		return
	}
	isDefault := now.Annotations[defaultClass] == "true"
	r.wakeClaims(func(c *corev1.PersistentVolumeClaim) bool {
		return volume.GetPersistentVolumeClaimClass(c) == now.Name || isDefault && !volume.PersistentVolumeClaimHasClass(c)
	})
}

// wakeClaims enqueues the claims without a volume that match.
func (r *reconciler) wakeClaims(match func(*corev1.PersistentVolumeClaim) bool) {
	list, err := r.claims.List(labels.Everything())
	if err != nil {
		return
	}
	for _, c := range list {
		if c.Spec.VolumeName == "" && match(c) {
			r.Queue.Add(controllers.KeyOf(c))
		}
	}
}

// Reconcile brings one claim or one volume on.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	if key.Namespace == "" {
		pv, err := r.volumes.Get(key.Name)
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return 0, r.syncVolume(ctx, pv)
	}
	claim, err := r.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, r.syncClaim(ctx, claim)
}
