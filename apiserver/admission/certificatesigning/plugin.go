package certificatesigning

import (
	"bytes"
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

func (plugin) Name() string { return "CertificateSigning" }

// Validate implements admission.Validator. The signer is the one of the stored request.
func (plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	old, ok := a.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || a.Operation != admission.Update || a.Subresource != "status" {
		return nil
	}
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if ok && bytes.Equal(r.Status.Certificate, old.Status.Certificate) && apiequality.Semantic.DeepEqual(r.Status.Conditions, old.Status.Conditions) {
		return nil
	}
	if a.MayFor(ctx, "sign", old.Spec.SignerName) {
		return nil
	}
	return fmt.Errorf("user not permitted to sign requests with signerName %q", old.Spec.SignerName)
}
