package noderestriction

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

// podCertificate: a node asks for certificates of pods that are bound to it, from the
// signers that their volumes name (KEP-4317).
func (p plugin) podCertificate(ctx context.Context, node string, a *admission.Attributes) error {
	if a.Operation != admission.Create {
		return fmt.Errorf("unexpected operation %v", a.Operation)
	}
	if a.Subresource != "" {
		return fmt.Errorf("unexpected subresource %v", a.Subresource)
	}
	r, ok := a.Object.(*certificatesv1.PodCertificateRequest)
	if !ok {
		return unexpectedType(a.Object)
	}
	spec, podName := &r.Spec, a.Namespace+"/"+r.Spec.PodName
	if string(spec.NodeName) != node {
		return fmt.Errorf("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", spec.NodeName, node)
	}
	n, err := get[*corev1.Node](p, nodes, "", node)
	if err != nil {
		return fmt.Errorf("while retrieving node %q named in the PodCertificateRequest: %w", spec.NodeName, err)
	}
	if n.UID != spec.NodeUID {
		return fmt.Errorf("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", podName, spec.NodeUID, n.UID)
	}
	pod, err := get[*corev1.Pod](p, pods, a.Namespace, spec.PodName)
	if err != nil {
		return fmt.Errorf("while retrieving pod %q named in the PodCertificateRequest: %w", podName, err)
	}
	_, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case spec.PodUID != pod.UID:
		return fmt.Errorf("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", podName, spec.PodUID, pod.UID)
	case pod.Spec.NodeName != node:
		return fmt.Errorf("pod %q is not running on node %q named in the PodCertificateRequest", podName, spec.NodeName)
	case mirrored:
		return fmt.Errorf("pod %q is a mirror pod", podName)
	case spec.ServiceAccountName != pod.Spec.ServiceAccountName:
		return fmt.Errorf("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", podName, spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	account, err := get[*corev1.ServiceAccount](p, accounts, a.Namespace, spec.ServiceAccountName)
	if err != nil {
		return fmt.Errorf("while retrieving service account %q named in the PodCertificateRequest: %w", a.Namespace+"/"+spec.ServiceAccountName, err)
	}
	if spec.ServiceAccountUID != account.UID {
		return fmt.Errorf("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", podName, spec.ServiceAccountUID, account.UID)
	}
	return p.signer(ctx, a, r, pod)
}

func (plugin) signer(ctx context.Context, a *admission.Attributes, r *certificatesv1.PodCertificateRequest, pod *corev1.Pod) error {
	for i := range pod.Spec.Volumes {
		if projected := pod.Spec.Volumes[i].Projected; projected != nil {
			for _, s := range projected.Sources {
				if s.PodCertificate != nil && s.PodCertificate.SignerName == r.Spec.SignerName {
					return nil
				}
			}
		}
	}
	// Names of resources hold no slashes: written as in names of ClusterTrustBundles.
	allowed, err := may(ctx, a, "request-serviceaccounts-podcertificate-signer", strings.ReplaceAll(r.Spec.SignerName, "/", ":"), r.Spec.ServiceAccountName)
	switch {
	case allowed:
		return nil
	case err != nil:
		return fmt.Errorf("error authorizing %s to request podcertificaterequests for signer %q: %w", a.User.GetName(), r.Spec.SignerName, err)
	}
	return fmt.Errorf("pod %q does not mount a podCertificate projected volume for signer %q", a.Namespace+"/"+r.Spec.PodName, r.Spec.SignerName)
}
