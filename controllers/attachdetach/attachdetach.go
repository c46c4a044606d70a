package attachdetach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/journey"
)

// Controller declares the controller of attachments.
func Controller() controllers.Controller {
	core, storage := corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	attachments := storage.WithResource("volumeattachments")
	return controllers.Controller{
		Name: "persistentvolume-attach-detach-controller", Workers: 1,
		Reads: []schema.GroupVersionResource{
			core.WithResource("pods"), core.WithResource("persistentvolumeclaims"), core.WithResource("persistentvolumes"), storage.WithResource("csidrivers"), attachments, core.WithResource("nodes"),
		},
		Writes: []schema.GroupVersionResource{attachments, core.WithResource("nodes")}, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	pods        cache.Indexer
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	drivers     storagelisters.CSIDriverLister
	attachments storagelisters.VolumeAttachmentLister
	nodes       corelisters.NodeLister

	mu      sync.Mutex              // guards waiting
	waiting map[types.UID]time.Time // attachments that a node may still use, since when
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
	if err := controllers.IndexPodsByNode(core.Pods().Informer()); err != nil {
		return nil, err
	}
	r := &reconciler{
		Setup: s, pods: core.Pods().Informer().GetIndexer(), claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		drivers: storage.CSIDrivers().Lister(), attachments: storage.VolumeAttachments().Lister(),
		nodes: core.Nodes().Lister(), waiting: map[types.UID]time.Time{},
	}
	s.Need(core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(), storage.CSIDrivers().Informer())
	s.Watch(core.Pods().Informer(), controllers.On(func(old, now *corev1.Pod) {
		pod := now
		if pod == nil {
			pod = old
		}
		came := old == nil || old.Spec.NodeName == ""
		went := now == nil || controllers.PodFinished(now)
		if pod.Spec.NodeName != "" && (came || went) && r.attachable(pod) {
			s.Queue.Add(controllers.Key{Name: pod.Spec.NodeName})
		}
	}))
	s.Watch(core.Nodes().Informer(), controllers.On(func(old, now *corev1.Node) {
		if now != nil && (old == nil && len(now.Status.VolumesAttached) > 0 || old != nil && !slices.Equal(old.Status.VolumesInUse, now.Status.VolumesInUse)) {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	s.Watch(storage.VolumeAttachments().Informer(), controllers.On(r.attachmentChanged))
	return r, nil
}

// attachmentChanged tells the pods how it went, and looks again.
func (r *reconciler) attachmentChanged(old, now *storagev1.VolumeAttachment) {
	if now == nil {
		// A volume that has left one node may be wanted on another.
		if list, err := r.attachments.List(labels.Everything()); err == nil {
			for _, va := range list {
				r.Queue.Add(controllers.Key{Name: va.Spec.NodeName})
			}
		}
		r.wakeWaiting(old)
		return
	}
	r.Queue.Add(controllers.Key{Name: now.Spec.NodeName})
	if old == nil || now.Spec.Source.PersistentVolumeName == nil {
		return
	}
	name := *now.Spec.Source.PersistentVolumeName
	switch {
	case !old.Status.Attached && now.Status.Attached:
		r.tell(now.Spec.NodeName, name, corev1.EventTypeNormal, "SuccessfulAttachVolume", "AttachVolume.Attach succeeded for volume \""+name+"\" ")
		r.note(now, name)
	case now.Status.AttachError != nil && (old.Status.AttachError == nil || old.Status.AttachError.Message != now.Status.AttachError.Message):
		r.tell(now.Spec.NodeName, name, corev1.EventTypeWarning, "FailedAttachVolume", "AttachVolume.Attach failed for volume \""+name+"\" : "+now.Status.AttachError.Message)
	}
}

// wakeWaiting looks at the nodes of pods that use a volume which has been detached.
func (r *reconciler) wakeWaiting(va *storagev1.VolumeAttachment) {
	for _, obj := range r.pods.List() {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" && va.Spec.Source.PersistentVolumeName != nil && slices.Contains(r.volumesOf(pod), *va.Spec.Source.PersistentVolumeName) {
			r.Queue.Add(controllers.Key{Name: pod.Spec.NodeName})
		}
	}
}

// note tells the journeys of the pods, and of the volume's claim.
func (r *reconciler) note(va *storagev1.VolumeAttachment, name string) {
	step := journey.Moment("persistentvolume-attach-detach-controller", "volume attached", "", va, time.Now()).On(va.Spec.NodeName).With("volume", name, "driver", va.Spec.Attacher)
	of := func(kind string, obj metav1.Object) {
		s := step
		s.Trace, s.Kind, s.Namespace, s.Name, s.UID = journey.TraceOf(obj), kind, obj.GetNamespace(), obj.GetName(), obj.GetUID()
		r.Journey.Record(s)
	}
	if pv, err := r.volumes.Get(name); err == nil {
		of("PersistentVolume", pv)
	}
	for _, pod := range controllers.PodsOnNode(r.pods, va.Spec.NodeName) {
		if slices.Contains(r.volumesOf(pod), name) {
			of("Pod", pod)
		}
	}
}

func (r *reconciler) tell(node, pv, level, reason, message string) {
	for _, pod := range controllers.PodsOnNode(r.pods, node) {
		if slices.Contains(r.volumesOf(pod), pv) {
			r.Recorder.Event(pod, level, reason, message)
		}
	}
}

// attachable reports whether a pod may need an attachment, before its claims are looked at.
func (r *reconciler) attachable(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// volumesOf lists the volumes of a pod whose drivers want them attached.
func (r *reconciler) volumesOf(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		var name string
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(pod, v)
		default:
			continue
		}
		claim, err := r.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil || claim.Spec.VolumeName == "" {
			continue
		}
		pv, err := r.volumes.Get(claim.Spec.VolumeName)
		if err != nil || pv.Spec.CSI == nil {
			continue
		}
		if d, err := r.drivers.Get(pv.Spec.CSI.Driver); err == nil && d.Spec.AttachRequired != nil && !*d.Spec.AttachRequired {
			continue
		}
		names = append(names, pv.Name)
	}
	return names
}

// Reconcile makes and deletes the attachments of one node.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	wanted := map[string][]*corev1.Pod{}
	for _, pod := range controllers.PodsOnNode(r.pods, key.Name) {
		if controllers.PodFinished(pod) {
			continue
		}
		for _, pv := range r.volumesOf(pod) {
			wanted[pv] = append(wanted[pv], pod)
		}
	}
	list, err := r.attachments.List(labels.Everything())
	if err != nil {
		return 0, err
	}
	var again time.Duration
	for _, va := range list {
		pv := va.Spec.Source.PersistentVolumeName
		if va.Spec.NodeName != key.Name || pv == nil || va.DeletionTimestamp != nil {
			continue
		}
		if _, ok := wanted[*pv]; ok {
			delete(wanted, *pv)
			continue
		}
		if wait := r.inUse(va, *pv); wait > 0 {
			again = max(again, wait)
			continue
		}
		uid := va.UID
		err := r.Client.StorageV1().VolumeAttachments().Delete(ctx, va.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return 0, err
		}
	}
	for name, pods := range wanted {
		if err := r.attach(ctx, key.Name, name, pods, list); err != nil {
			return 0, err
		}
	}
	return again, r.showAttached(ctx, key.Name, list)
}

func (r *reconciler) attach(ctx context.Context, node, name string, pods []*corev1.Pod, all []*storagev1.VolumeAttachment) error {
	pv, err := r.volumes.Get(name)
	if err != nil {
		return err
	}
	if !shared(pv) {
		for _, va := range all {
			if va.Spec.Source.PersistentVolumeName != nil && *va.Spec.Source.PersistentVolumeName == name && va.Spec.NodeName != node {
				r.refuse(pv, pods, va.Spec.NodeName)
				return nil // its detachment brings us back
			}
		}
	}
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(pv.Spec.CSI.VolumeHandle, pv.Spec.CSI.Driver, node)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: pv.Spec.CSI.Driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
		},
	}
	_, err = r.Client.StorageV1().VolumeAttachments().Create(ctx, va, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// attachmentName is what the kubelet looks for.
func attachmentName(handle, driver, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// shared reports whether a volume may be on several nodes.
func shared(pv *corev1.PersistentVolume) bool {
	return slices.Contains(pv.Spec.AccessModes, corev1.ReadWriteMany) || slices.Contains(pv.Spec.AccessModes, corev1.ReadOnlyMany)
}

// refuse says why a volume cannot be attached yet.
func (r *reconciler) refuse(pv *corev1.PersistentVolume, pods []*corev1.Pod, elsewhere string) {
	var users []string
	for _, other := range controllers.PodsOnNode(r.pods, elsewhere) {
		if slices.Contains(r.volumesOf(other), pv.Name) && other.Namespace == pods[0].Namespace {
			users = append(users, other.Name)
		}
	}
	text := "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node"
	if len(users) > 0 {
		text = "Volume is already used by pod(s) " + strings.Join(users, ", ")
	}
	for _, pod := range pods {
		r.Recorder.Eventf(pod, corev1.EventTypeWarning, "FailedAttachVolume", "Waiting for detach for volume %q %s", pv.Name, text)
	}
}
