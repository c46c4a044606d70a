package certificateapproval

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

// New returns the plug-in.
func New() admission.Plugin {
	return &admission.SignerRule{
		Plugin: "CertificateApproval", Verb: "approve", Refused: "user not permitted to approve requests with signerName %q", Signer: signer,
	}
}

// signer is the one of the stored request.
func signer(a *admission.Attributes) (string, bool) {
	r, ok := a.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || a.Operation != admission.Update || a.Subresource != "approval" {
		return "", false
	}
	return r.Spec.SignerName, true
}
