package csi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/volume"
)

// attachTimeout bounds the wait for the attach controller; the kubelet asks again.
const attachTimeout = 2 * time.Minute

// A source is one volume of one pod as its driver sees it.
type source struct {
	data       data
	attributes map[string]string
	fsType     string
	options    []string
	modes      []corev1.PersistentVolumeAccessMode
	readOnly   bool

	stageSecret, publishSecret *corev1.SecretReference

	can    csi.Capabilities
	object *storagev1.CSIDriver
}

func (p *Plugin) source(r volume.Request) (*source, error) {
	s := &source{data: data{Node: p.config.Node}}
	if pv := r.Persistent; pv != nil {
		from := pv.Spec.CSI
		s.data.Volume, s.data.Handle, s.data.Driver, s.data.Lifecycle = pv.Name, from.VolumeHandle, from.Driver, persistent
		s.data.Block = csi.IsBlock(pv.Spec.VolumeMode)
		s.attributes, s.fsType, s.options, s.modes = from.VolumeAttributes, from.FSType, pv.Spec.MountOptions, pv.Spec.AccessModes
		s.readOnly = from.ReadOnly || r.ReadOnly
		s.stageSecret, s.publishSecret = from.NodeStageSecretRef, from.NodePublishSecretRef
		return s, nil
	}
	from := r.Volume.CSI
	if from == nil {
		return nil, errors.New("no CSI source")
	}
	// An inline volume is the pod's alone: its handle is made of the two.
	sum := sha256.Sum256([]byte(string(r.Pod.UID) + r.Volume.Name))
	s.data.Volume, s.data.Handle, s.data.Driver, s.data.Lifecycle = r.Volume.Name, "csi-"+hex.EncodeToString(sum[:]), from.Driver, inline
	s.attributes, s.modes = from.VolumeAttributes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if from.FSType != nil {
		s.fsType = *from.FSType
	}
	s.readOnly = from.ReadOnly != nil && *from.ReadOnly
	if from.NodePublishSecretRef != nil {
		s.publishSecret = &corev1.SecretReference{Namespace: r.Pod.Namespace, Name: from.NodePublishSecretRef.Name}
	}
	return s, nil
}

func (s *source) capability(r volume.Request) *csipb.VolumeCapability {
	group := ""
	if s.can.MountGroup && r.FSGroup != nil {
		group = strconv.FormatInt(*r.FSGroup, 10)
	}
	return csi.Capability(s.data.Block, csi.AccessMode(s.modes, s.can), s.fsType, s.options, group)
}

// ownedByGroup reports whether the files are to be given to the pod's fsGroup, by the
// driver's fsGroupPolicy.
func (s *source) ownedByGroup() bool {
	if s.can.MountGroup {
		return false // the driver has done it
	}
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	if s.object.Spec.FSGroupPolicy != nil {
		policy = *s.object.Spec.FSGroupPolicy
	}
	switch policy {
	case storagev1.NoneFSGroupPolicy:
		return false
	case storagev1.FileFSGroupPolicy:
		return true
	}
	return s.fsType != "" && (slices.Contains(s.modes, corev1.ReadWriteOnce) || slices.Contains(s.modes, corev1.ReadWriteOncePod))
}

// withPod adds what drivers with podInfoOnMount want to know of the pod.
func (s *source) withPod(_ context.Context, r volume.Request) (map[string]string, error) {
	if s.data.Lifecycle == inline && !slices.Contains(s.object.Spec.VolumeLifecycleModes, storagev1.VolumeLifecycleEphemeral) {
		return nil, fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", inline, s.data.Driver, s.object.Spec.VolumeLifecycleModes)
	}
	if s.object.Spec.PodInfoOnMount == nil || !*s.object.Spec.PodInfoOnMount {
		return s.attributes, nil
	}
	out := maps.Clone(s.attributes)
	if out == nil {
		out = map[string]string{}
	}
	out["csi.storage.k8s.io/pod.name"] = r.Pod.Name
	out["csi.storage.k8s.io/pod.namespace"] = r.Pod.Namespace
	out["csi.storage.k8s.io/pod.uid"] = string(r.Pod.UID)
	out["csi.storage.k8s.io/serviceAccount.name"] = r.Pod.Spec.ServiceAccountName
	out["csi.storage.k8s.io/ephemeral"] = strconv.FormatBool(s.data.Lifecycle == inline)
	return out, nil
}

// attached waits until the volume is attached to this node, where its driver wants
// that, and returns what the driver said about it.
func (p *Plugin) attached(ctx context.Context, s *source) (map[string]string, error) {
	if s.data.Lifecycle == inline || s.object.Spec.AttachRequired != nil && !*s.object.Spec.AttachRequired {
		return nil, nil
	}
	name := csi.AttachmentName(s.data.Handle, s.data.Driver, p.config.Node)
	s.data.Attachment = name
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	attachments := p.config.Client.StorageV1().VolumeAttachments()
	w, err := attachments.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	va, err := attachments.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		va = &storagev1.VolumeAttachment{} // the controller has not seen the pod yet
	}
	for {
		if va.Status.Attached {
			return va.Status.AttachmentMetadata, nil
		}
		select {
		case <-ctx.Done():
			if e := va.Status.AttachError; e != nil {
				return nil, errors.New(e.Message)
			}
			return nil, fmt.Errorf("timed out waiting for external-attacher of %s CSI driver to attach volume %s", s.data.Driver, s.data.Handle)
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil, fmt.Errorf("volume %s has not been attached yet", s.data.Handle)
			}
			if now, is := e.Object.(*storagev1.VolumeAttachment); is {
				va = now
			}
		}
	}
}
