package certificateapproval

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

type plugin struct{}

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return "CertificateApproval" }

// Validate implements admission.Validator. The signer is the one of the stored request.
func (plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	r, ok := a.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || a.Operation != admission.Update || a.Subresource != "approval" || a.MayFor(ctx, "approve", r.Spec.SignerName) {
		return nil
	}
	return fmt.Errorf("user not permitted to approve requests with signerName %q", r.Spec.SignerName)
}
