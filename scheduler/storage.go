package scheduler

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
)

// Resources of volumes, for ClusterEvents.
const (
	PersistentVolumeClaim Resource = "PersistentVolumeClaim"
	PersistentVolume      Resource = "PersistentVolume"
	StorageClass          Resource = "StorageClass"
	CSINode               Resource = "CSINode"
)

// Storage is what the volume plug-ins read. It is made when the first of them asks.
type Storage struct {
	Claims  corelisters.PersistentVolumeClaimLister
	Volumes corelisters.PersistentVolumeLister
	Classes storagelisters.StorageClassLister
	Nodes   storagelisters.CSINodeLister

	// OnClaim, if not nil, is called when a claim or a volume has changed.
	OnClaim func()
}

// Storage returns the view of volumes, nil without informers (Simulate). Only while
// plug-ins are made.
func (f *Framework) Storage() (*Storage, error) {
	if f.storage != nil || f.Informers == nil {
		return f.storage, nil
	}
	core, storage := f.Informers.Core().V1(), f.Informers.Storage().V1()
	s := &Storage{
		Claims: core.PersistentVolumeClaims().Lister(), Volumes: core.PersistentVolumes().Lister(),
		Classes: storage.StorageClasses().Lister(), Nodes: storage.CSINodes().Lister(),
	}
	changed := func() {
		if s.OnClaim != nil {
			s.OnClaim()
		}
	}
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		kind     Resource
		after    func()
	}{
		{core.PersistentVolumeClaims().Informer(), PersistentVolumeClaim, changed},
		{core.PersistentVolumes().Informer(), PersistentVolume, changed},
		{storage.StorageClasses().Informer(), StorageClass, func() {}},
		{storage.CSINodes().Informer(), CSINode, func() {}},
	} {
		registration, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { f.event(ClusterEvent{w.kind, Add}, nil, o); w.after() },
			UpdateFunc: func(o, n any) { f.event(ClusterEvent{w.kind, UpdateLabels}, o, n); w.after() },
			DeleteFunc: func(o any) { f.event(ClusterEvent{w.kind, Delete}, o, nil); w.after() },
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", w.kind, err)
		}
		f.Watch(registration)
	}
	f.storage = s
	return s, nil
}

func (f *Framework) event(e ClusterEvent, old, new any) {
	if f.queue != nil {
		f.queue.Event(e, old, new)
	}
}

// HasClaims reports whether a pod uses any claim.
func HasClaims(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

// ClaimName returns the claim that a volume of a pod is, "" if it is none.
func ClaimName(pod *v1.Pod, v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return ephemeral.VolumeClaimName(pod, v)
	}
	return ""
}

// PodClaims returns the claims of a pod; an error says to people why it cannot be
// scheduled yet.
func (s *Storage) PodClaims(pod *v1.Pod) ([]*v1.PersistentVolumeClaim, error) {
	var out []*v1.PersistentVolumeClaim
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := ClaimName(pod, v)
		if name == "" {
			continue
		}
		claim, err := s.Claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		switch {
		case apierrors.IsNotFound(err) && v.Ephemeral != nil:
			return nil, fmt.Errorf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", name)
		case err != nil:
			return nil, err
		case claim.Status.Phase == v1.ClaimLost:
			return nil, fmt.Errorf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", claim.Name, claim.Spec.VolumeName)
		case claim.DeletionTimestamp != nil:
			return nil, fmt.Errorf("persistentvolumeclaim %q is being deleted", claim.Name)
		}
		if v.Ephemeral != nil {
			if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
				return nil, err
			}
		}
		out = append(out, claim)
	}
	return out, nil
}

// Bound reports whether a claim has its volume.
func Bound(claim *v1.PersistentVolumeClaim) bool {
	_, done := claim.Annotations[volume.AnnBindCompleted]
	return claim.Spec.VolumeName != "" && done
}

// Late returns the class of a claim that is bound when its first pod is scheduled,
// nil for other claims.
func (s *Storage) Late(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, err := s.Classes.Get(volume.GetPersistentVolumeClaimClass(claim))
	if err != nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil
	}
	return class
}
