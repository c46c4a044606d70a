package node

import (
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

var (
	podResource         = corev1.SchemeGroupVersion.WithResource("pods")
	volumeResource      = corev1.SchemeGroupVersion.WithResource("persistentvolumes")
	attachmentResource  = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
	sliceResource       = resourcev1.SchemeGroupVersion.WithResource("resourceslices")
	certificateResource = certificatesv1beta1.SchemeGroupVersion.WithResource("podcertificaterequests")
)

// objects finds out what has to do with a node:
//
//	node ◄── pod ◄── secret, config map, service account, resource claim
//	          ▲
//	          └───── claim ◄── volume ◄── secret of its driver
//	node ◄── volume attachment, resource slice, certificate request
type objects struct{ registry.Reader }

func get[T any](o objects, gvr schema.GroupVersionResource, namespace, name string) (none T) {
	obj, err := o.Get(gvr, namespace, name)
	if err != nil {
		return none
	}
	t, _ := any(obj).(T)
	return t
}

func (o objects) pod(node, namespace, name string) bool {
	p := get[*corev1.Pod](o, podResource, namespace, name)
	return p != nil && p.Spec.NodeName == node
}

// pods relates what pods of a node name.
func (o objects) pods(resource string) relation {
	return func(node, namespace, name string) bool {
		list, err := o.List(podResource, namespace)
		if err != nil {
			return false
		}
		for _, obj := range list {
			if p := obj.(*corev1.Pod); p.Spec.NodeName == node && uses(p, resource, name) {
				return true
			}
		}
		return false
	}
}

func (o objects) volume(node, _, name string) bool {
	v := get[*corev1.PersistentVolume](o, volumeResource, "", name)
	return v != nil && o.claimed(node, v)
}

func (o objects) claimed(node string, v *corev1.PersistentVolume) bool {
	c := v.Spec.ClaimRef
	return c != nil && o.pods("persistentvolumeclaims")(node, c.Namespace, c.Name)
}

// secret is one that a pod names, or the volume of a pod's claim does.
func (o objects) secret(node, namespace, name string) bool {
	if o.pods("secrets")(node, namespace, name) {
		return true
	}
	list, err := o.List(volumeResource, "")
	if err != nil {
		return false
	}
	for _, obj := range list {
		if v := obj.(*corev1.PersistentVolume); volumeNames(v, namespace, name) && o.claimed(node, v) {
			return true
		}
	}
	return false
}

// volumeNames reports whether a node needs a secret to mount a volume.
func volumeNames(v *corev1.PersistentVolume, namespace, name string) bool {
	is := func(r *corev1.SecretReference) bool { return r != nil && r.Namespace == namespace && r.Name == name }
	switch s := &v.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		return is(s.CSI.NodeStageSecretRef) || is(s.CSI.NodePublishSecretRef) || is(s.CSI.NodeExpandSecretRef) || is(s.CSI.ControllerPublishSecretRef)
	case s.FlexVolume != nil:
		return is(s.FlexVolume.SecretRef)
	case s.ISCSI != nil:
		return is(s.ISCSI.SecretRef)
	case s.CephFS != nil:
		return is(s.CephFS.SecretRef)
	case s.RBD != nil:
		return is(s.RBD.SecretRef)
	case s.AzureFile != nil:
		space := namespace // that of the claim, unless it says another
		if s.AzureFile.SecretNamespace != nil {
			space = *s.AzureFile.SecretNamespace
		} else if v.Spec.ClaimRef != nil {
			space = v.Spec.ClaimRef.Namespace
		}
		return space == namespace && s.AzureFile.SecretName == name
	}
	return false
}

func (o objects) attachment(node, _, name string) bool {
	a := get[*storagev1.VolumeAttachment](o, attachmentResource, "", name)
	return a != nil && a.Spec.NodeName == node
}

func (o objects) slice(node, _, name string) bool {
	s := get[*resourcev1.ResourceSlice](o, sliceResource, "", name)
	return s != nil && s.Spec.NodeName != nil && *s.Spec.NodeName == node
}

func (o objects) certificateRequest(node, namespace, name string) bool {
	r := get[*certificatesv1beta1.PodCertificateRequest](o, certificateResource, namespace, name)
	return r != nil && string(r.Spec.NodeName) == node
}
