package clustertrustbundleattest

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/periplus/periplus/apiserver/admission"
)

type plugin struct{}

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return "ClusterTrustBundleAttest" }

// Validate implements admission.Validator.
func (plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	b, ok := a.Object.(*certificatesv1.ClusterTrustBundle)
	if !ok || b.Spec.SignerName == "" || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	if old, ok := a.Old.(*certificatesv1.ClusterTrustBundle); ok && onlyOwners(b, old) {
		return nil // garbage collection, or a rewrite in another version
	}
	if a.MayFor(ctx, "attest", b.Spec.SignerName) {
		return nil
	}
	return fmt.Errorf("user not permitted to attest for signerName %q", b.Spec.SignerName)
}

// onlyOwners reports that at most owners and finalizers changed.
func onlyOwners(b, old *certificatesv1.ClusterTrustBundle) bool {
	same := b.DeepCopy()
	same.OwnerReferences, same.Finalizers, same.ManagedFields = old.OwnerReferences, old.Finalizers, old.ManagedFields
	same.ResourceVersion = old.ResourceVersion
	return apiequality.Semantic.DeepEqual(same, old)
}
