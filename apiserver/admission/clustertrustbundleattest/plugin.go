package clustertrustbundleattest

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/periplus/periplus/apiserver/admission"
)

// New returns the plug-in.
func New() admission.Plugin {
	return &admission.SignerRule{
		Plugin: "ClusterTrustBundleAttest", Verb: "attest", Refused: "user not permitted to attest for signerName %q", Signer: signer,
	}
}

func signer(a *admission.Attributes) (string, bool) {
	b, ok := a.Object.(*certificatesv1.ClusterTrustBundle)
	if !ok || b.Spec.SignerName == "" || a.Operation != admission.Create && a.Operation != admission.Update {
		return "", false
	}
	if old, ok := a.Old.(*certificatesv1.ClusterTrustBundle); ok && onlyOwners(b, old) {
		return "", false // garbage collection, or a rewrite in another version
	}
	return b.Spec.SignerName, true
}

// onlyOwners reports that at most owners and finalizers changed.
func onlyOwners(b, old *certificatesv1.ClusterTrustBundle) bool {
	same := b.DeepCopy()
	same.OwnerReferences, same.Finalizers, same.ManagedFields = old.OwnerReferences, old.Finalizers, old.ManagedFields
	same.ResourceVersion = old.ResourceVersion
	return apiequality.Semantic.DeepEqual(same, old)
}
