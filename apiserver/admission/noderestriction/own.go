package noderestriction

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"

	"github.com/periplus/periplus/apiserver/admission"
)

// claimStatus lets a node say how large a volume is, and how its growth goes.
func claimStatus(node string, a *admission.Attributes) error {
	if a.Operation != admission.Update {
		return fmt.Errorf("unexpected operation %q", a.Operation)
	}
	old, ok := a.Old.(*corev1.PersistentVolumeClaim)
	if !ok {
		return unexpectedType(a.Old)
	}
	now, ok := a.Object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return unexpectedType(a.Object)
	}
	old, now = old.DeepCopy(), now.DeepCopy()
	for _, c := range []*corev1.PersistentVolumeClaim{old, now} {
		c.ResourceVersion, c.ManagedFields = "", nil
		c.Status.Capacity, c.Status.Conditions, c.Status.AllocatedResources, c.Status.AllocatedResourceStatuses = nil, nil, nil, nil
	}
	old.TypeMeta = now.TypeMeta // one of them was decoded from a body
	if !equality.Semantic.DeepEqual(old, now) {
		return fmt.Errorf("node %q is not allowed to update fields other than status.quantity and status.conditions: %v", node, diff.Diff(old, now))
	}
	return nil
}

// selectedNode is where a claim's volume is to be made.
const selectedNode = "volume.kubernetes.io/selected-node"

// claimTaken is not in upstream, where provisioners are pods with accounts of their own:
// here a node makes its volumes itself. It may put its own name on a claim that has none,
// and take it off again when it has no room.
func claimTaken(node string, a *admission.Attributes) error {
	old, okOld := a.Old.(*corev1.PersistentVolumeClaim)
	now, okNow := a.Object.(*corev1.PersistentVolumeClaim)
	if a.Operation != admission.Update || !okOld || !okNow {
		return errors.New("may only update PVC status")
	}
	before, was := old.Annotations[selectedNode]
	after, is := now.Annotations[selectedNode]
	old, now = old.DeepCopy(), now.DeepCopy()
	for _, c := range []*corev1.PersistentVolumeClaim{old, now} {
		c.ResourceVersion, c.ManagedFields = "", nil
		delete(c.Annotations, selectedNode)
	}
	old.TypeMeta = now.TypeMeta
	if was == is || was && before != node || is && after != node || !equality.Semantic.DeepEqual(old, now) {
		return errors.New("may only update PVC status")
	}
	return nil
}

func lease(node string, a *admission.Attributes) error {
	if a.Namespace != corev1.NamespaceNodeLease {
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	if nameOf(a) != node {
		return errors.New("can only access node lease with the same name as the requesting node")
	}
	return nil
}

func csiNode(node string, a *admission.Attributes) error {
	if nameOf(a) != node {
		return errors.New("can only access CSINode with the same name as the requesting node")
	}
	if a.Subresource != "status" {
		return nil
	}
	if a.Operation != admission.Update {
		return fmt.Errorf("unexpected operation %q", a.Operation)
	}
	old, ok := a.Old.(*storagev1.CSINode)
	if !ok {
		return unexpectedType(a.Old)
	}
	if now, ok := a.Object.(*storagev1.CSINode); !ok || !equality.Semantic.DeepEqual(old.Spec, now.Spec) {
		return fmt.Errorf("node %q is not allowed to modify CSINode spec via status", node)
	}
	return nil
}

// slice: whose a device is that is announced or withdrawn. Other requests are up to the
// authorizer of nodes, who does not see the objects of these two.
func slice(node string, a *admission.Attributes) error {
	check := func(obj runtime.Object, refusal string) error {
		s, ok := obj.(*resourcev1.ResourceSlice)
		if !ok {
			return unexpectedType(obj)
		}
		if s.Spec.NodeName == nil || *s.Spec.NodeName != node {
			return errors.New(refusal)
		}
		return nil
	}
	switch a.Operation {
	case admission.Create:
		return check(a.Object, "can only create ResourceSlice with the same NodeName as the requesting node")
	case admission.Delete:
		return check(a.Old, "can only delete ResourceSlice with the same NodeName as the requesting node")
	}
	return nil
}

// certificate: a node asks for certificates of kubelets in its own name only.
func certificate(node string, a *admission.Attributes) error {
	if a.Operation != admission.Create {
		return nil
	}
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return unexpectedType(a.Object)
	}
	if r.Spec.SignerName != certificatesv1.KubeletServingSignerName && r.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("unable to parse csr: PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return fmt.Errorf("unable to parse csr: %w", err)
	}
	if parsed.Subject.CommonName != "system:node:"+node {
		return fmt.Errorf("can only create a node CSR with CN=system:node:%s", node)
	}
	return nil
}
