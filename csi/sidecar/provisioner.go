package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/journey"
)

// Provisioner is the name of the provisioner, under which it records events.
const Provisioner = "csi-provisioner"

// finalizer keeps a volume's object until its storage is deleted.
const finalizer = "external-provisioner.volume.kubernetes.io/finalizer"

type provisioner struct {
	duty
	classes storagelisters.StorageClassLister
	nodes   storagelisters.CSINodeLister
}

func (c Config) provisioner(s *controllers.Setup) (controllers.Reconciler, error) {
	core, storage := s.Informers.Core().V1(), s.Informers.Storage().V1()
	p := &provisioner{duty: c.duty(s), classes: storage.StorageClasses().Lister(), nodes: storage.CSINodes().Lister()}
	s.Need(storage.StorageClasses().Informer(), storage.CSINodes().Informer())
	claim := func(c *corev1.PersistentVolumeClaim) {
		if c != nil && c.Spec.VolumeName == "" && p.serves(c.Annotations[volume.AnnStorageProvisioner]) {
			s.Queue.Add(controllers.KeyOf(c))
		}
	}
	pv := func(v *corev1.PersistentVolume) {
		if v != nil && (v.Status.Phase == corev1.VolumeReleased || v.DeletionTimestamp != nil) && p.serves(v.Annotations[volume.AnnDynamicallyProvisioned]) {
			s.Queue.Add(controllers.KeyOf(v))
		}
	}
	s.Watch(core.PersistentVolumeClaims().Informer(), controllers.On(func(_, now *corev1.PersistentVolumeClaim) { claim(now) }))
	s.Watch(core.PersistentVolumes().Informer(), controllers.On(func(_, now *corev1.PersistentVolume) { pv(now) }))
	p.again(func() {
		if claims, err := p.claims.List(labels.Everything()); err == nil {
			for _, c := range claims {
				claim(c)
			}
		}
		if volumes, err := p.volumes.List(labels.Everything()); err == nil {
			for _, v := range volumes {
				pv(v)
			}
		}
	})
	return p, nil
}

// Reconcile makes the volume of a claim, or deletes the storage of a volume.
func (p *provisioner) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	if key.Namespace == "" {
		pv, err := p.volumes.Get(key.Name)
		if apierrors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return 0, p.delete(ctx, pv)
	}
	claim, err := p.claims.PersistentVolumeClaims(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, p.provision(ctx, claim)
}

func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	driver := claim.Annotations[volume.AnnStorageProvisioner]
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || !p.serves(driver) {
		return nil
	}
	if _, err := p.volumes.Get(volumeName(claim)); err == nil {
		return nil // it waits to be bound
	}
	class, err := p.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
	if err != nil {
		return err
	}
	if class.Provisioner != driver {
		return nil // the class was replaced; the binder asks again
	}
	mine, err := p.take(ctx, claim, class)
	if err != nil || !mine {
		return err
	}
	start := time.Now()
	p.Recorder.Eventf(claim, corev1.EventTypeNormal, "Provisioning", "External provisioner is provisioning volume for claim %q", claim.Namespace+"/"+claim.Name)
	pv, err := p.create(ctx, claim, class, driver)
	if err != nil {
		return p.failed(ctx, claim, class, err)
	}
	if _, err := p.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	p.Recorder.Eventf(claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s", pv.Name)
	p.Journey.Record(journey.Step(Provisioner, "volume provisioned", "PersistentVolumeClaim", claim, start).On(p.Node).With("driver", driver, "volume", pv.Name))
	return nil
}

// take says whether the claim's volume is to be made here. A claim without a node
// goes to the first who writes its name on it.
func (p *provisioner) take(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (bool, error) {
	if node, ok := claim.Annotations[volume.AnnSelectedNode]; ok {
		return node == p.Node, nil
	}
	if class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		return false, nil
	}
	node := p.NodeObject()
	if node == nil || !inTopologies(class.AllowedTopologies, node.Labels) {
		return false, nil
	}
	out := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, volume.AnnSelectedNode, p.Node)
	_, err := p.Client.CoreV1().PersistentVolumeClaims(out.Namespace).Update(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return false, nil // another was quicker: its write brings us back
	}
	return err == nil, err
}

// failed reports a failure. When the node has no room, the scheduler may choose another.
func (p *provisioner) failed(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, err error) error {
	var said *refusal
	if errors.As(err, &said) {
		p.Recorder.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", said.Error())
		return err
	}
	p.Recorder.Eventf(claim, corev1.EventTypeWarning, "ProvisioningFailed", "failed to provision volume with StorageClass %q: %s", class.Name, csi.Message(err))
	if status.Code(err) == codes.ResourceExhausted && claim.Annotations[volume.AnnSelectedNode] != "" {
		fresh, e := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if e != nil {
			return errors.Join(err, e)
		}
		out := fresh.DeepCopy()
		delete(out.Annotations, volume.AnnSelectedNode)
		if _, e := p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, out, metav1.UpdateOptions{}); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// refusal is a failure that no driver was asked about.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// delete deletes the storage of a volume that nobody claims any more.
func (p *provisioner) delete(ctx context.Context, pv *corev1.PersistentVolume) error {
	driver := pv.Annotations[volume.AnnDynamicallyProvisioned]
	if !p.serves(driver) || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver || !p.here(pv) {
		return nil
	}
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || pv.Status.Phase != corev1.VolumeReleased {
		// Kept: only its object goes.
		if pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound {
			return p.dropFinalizer(ctx, pv)
		}
		return nil
	}
	d, err := p.Drivers.Get(driver)
	if err != nil {
		return err
	}
	secrets, err := p.secrets(ctx, secretOf(pv.Annotations, "volume.kubernetes.io/provisioner-deletion-secret-name", "volume.kubernetes.io/provisioner-deletion-secret-namespace"))
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	if _, err := d.DeleteVolume(call, &csipb.DeleteVolumeRequest{VolumeId: pv.Spec.CSI.VolumeHandle, Secrets: secrets}); err != nil {
		p.Recorder.Event(pv, corev1.EventTypeWarning, "VolumeFailedDelete", csi.Message(err))
		return fmt.Errorf("delete volume %s: %w", pv.Name, err)
	}
	uid := pv.UID
	if pv.DeletionTimestamp == nil {
		err = p.Client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return p.dropFinalizer(ctx, pv)
}

func (p *provisioner) dropFinalizer(ctx context.Context, pv *corev1.PersistentVolume) error {
	fresh, err := p.Client.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || fresh.UID != pv.UID {
		return err
	}
	out := fresh.DeepCopy()
	out.Finalizers = nil
	for _, f := range fresh.Finalizers {
		if f != finalizer {
			out.Finalizers = append(out.Finalizers, f)
		}
	}
	if len(out.Finalizers) == len(fresh.Finalizers) {
		return nil
	}
	_, err = p.Client.CoreV1().PersistentVolumes().Update(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
