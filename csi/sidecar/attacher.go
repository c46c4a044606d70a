package sidecar

import (
	"context"
	"slices"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/csi"
)

// attached keeps a VolumeAttachment until its volume is detached.
const attachedPrefix = "external-attacher/"

type attacher struct {
	duty
	attachments storagelisters.VolumeAttachmentLister
	nodes       storagelisters.CSINodeLister
}

func (c Config) attacher(s *controllers.Setup) (controllers.Reconciler, error) {
	storage := s.Informers.Storage().V1()
	a := &attacher{duty: c.duty(s), attachments: storage.VolumeAttachments().Lister(), nodes: storage.CSINodes().Lister()}
	s.Need(storage.CSINodes().Informer())
	look := func(va *storagev1.VolumeAttachment) {
		// Each node attaches what it needs itself.
		if va != nil && va.Spec.NodeName == c.Node && a.serves(va.Spec.Attacher) {
			s.Queue.Add(controllers.KeyOf(va))
		}
	}
	s.Watch(storage.VolumeAttachments().Informer(), controllers.On(func(_, now *storagev1.VolumeAttachment) { look(now) }))
	a.again(func() {
		if list, err := a.attachments.List(labels.Everything()); err == nil {
			for _, va := range list {
				look(va)
			}
		}
	})
	return a, nil
}

// Reconcile attaches or detaches one volume.
func (a *attacher) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	va, err := a.attachments.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || !a.serves(va.Spec.Attacher) {
		return 0, err
	}
	if va.DeletionTimestamp != nil {
		return 0, a.detach(ctx, va)
	}
	if va.Status.Attached {
		return 0, nil
	}
	return 0, a.attach(ctx, va)
}

func (a *attacher) source(va *storagev1.VolumeAttachment) (*corev1.PersistentVolume, *corev1.PersistentVolumeSpec, error) {
	if va.Spec.Source.PersistentVolumeName != nil {
		pv, err := a.volumes.Get(*va.Spec.Source.PersistentVolumeName)
		if err != nil {
			return nil, nil, err
		}
		return pv, &pv.Spec, nil
	}
	return nil, va.Spec.Source.InlineVolumeSpec, nil
}

func (a *attacher) attach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	mark := attachedPrefix + va.Spec.Attacher
	if !slices.Contains(va.Finalizers, mark) {
		out := va.DeepCopy()
		out.Finalizers = append(out.Finalizers, mark)
		updated, err := a.Client.StorageV1().VolumeAttachments().Update(ctx, out, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		va = updated
	}
	publish, err := a.publish(ctx, va)
	out := va.DeepCopy()
	if err != nil {
		out.Status.AttachError = &storagev1.VolumeError{Time: metav1.Now(), Message: csi.Message(err)}
	} else {
		out.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: publish}
	}
	if _, e := a.Client.StorageV1().VolumeAttachments().UpdateStatus(ctx, out, metav1.UpdateOptions{}); e != nil {
		return e
	}
	return err
}

// publish is ControllerPublishVolume, where the driver has it.
func (a *attacher) publish(ctx context.Context, va *storagev1.VolumeAttachment) (map[string]string, error) {
	d, err := a.Drivers.Get(va.Spec.Attacher)
	if err != nil {
		return nil, err
	}
	can, err := d.Capabilities(ctx)
	if err != nil || !can.Publish {
		return nil, err
	}
	_, spec, err := a.source(va)
	if err != nil {
		return nil, err
	}
	secrets, err := a.secrets(ctx, spec.CSI.ControllerPublishSecretRef)
	if err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	resp, err := d.ControllerPublishVolume(call, &csipb.ControllerPublishVolumeRequest{
		VolumeId: spec.CSI.VolumeHandle, NodeId: a.nodeID(va.Spec.Attacher), Readonly: spec.CSI.ReadOnly, Secrets: secrets, VolumeContext: spec.CSI.VolumeAttributes,
		VolumeCapability: csi.Capability(csi.IsBlock(spec.VolumeMode), csi.AccessMode(spec.AccessModes, can), spec.CSI.FSType, spec.MountOptions, ""),
	})
	return resp.GetPublishContext(), err
}

// nodeID is what the driver calls this node.
func (a *attacher) nodeID(driver string) string {
	if n, err := a.nodes.Get(a.Node); err == nil {
		for _, d := range n.Spec.Drivers {
			if d.Name == driver {
				return d.NodeID
			}
		}
	}
	return a.Node
}

func (a *attacher) detach(ctx context.Context, va *storagev1.VolumeAttachment) error {
	mark := attachedPrefix + va.Spec.Attacher
	at := slices.Index(va.Finalizers, mark)
	if at < 0 {
		return nil
	}
	if err := a.unpublish(ctx, va); err != nil {
		out := va.DeepCopy()
		out.Status.DetachError = &storagev1.VolumeError{Time: metav1.Now(), Message: csi.Message(err)}
		if _, e := a.Client.StorageV1().VolumeAttachments().UpdateStatus(ctx, out, metav1.UpdateOptions{}); e != nil {
			return e
		}
		return err
	}
	out := va.DeepCopy()
	out.Finalizers = slices.Delete(out.Finalizers, at, at+1)
	_, err := a.Client.StorageV1().VolumeAttachments().Update(ctx, out, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (a *attacher) unpublish(ctx context.Context, va *storagev1.VolumeAttachment) error {
	d, err := a.Drivers.Get(va.Spec.Attacher)
	if err != nil {
		return err
	}
	can, err := d.Capabilities(ctx)
	if err != nil || !can.Publish {
		return err
	}
	_, spec, err := a.source(va)
	if err != nil {
		return err
	}
	secrets, err := a.secrets(ctx, spec.CSI.ControllerPublishSecretRef)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	_, err = d.ControllerUnpublishVolume(call, &csipb.ControllerUnpublishVolumeRequest{
		VolumeId: spec.CSI.VolumeHandle, NodeId: a.nodeID(va.Spec.Attacher), Secrets: secrets,
	})
	return err
}
