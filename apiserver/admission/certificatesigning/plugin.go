package certificatesigning

import (
	"bytes"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/periplus/periplus/apiserver/admission"
)

// New returns the plug-in.
func New() admission.Plugin {
	return &admission.SignerRule{
		Plugin: "CertificateSigning", Verb: "sign", Refused: "user not permitted to sign requests with signerName %q", Signer: signer,
	}
}

// signer is the one of the stored request.
func signer(a *admission.Attributes) (string, bool) {
	old, ok := a.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || a.Operation != admission.Update || a.Subresource != "status" {
		return "", false
	}
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if ok && bytes.Equal(r.Status.Certificate, old.Status.Certificate) && apiequality.Semantic.DeepEqual(r.Status.Conditions, old.Status.Conditions) {
		return "", false
	}
	return old.Spec.SignerName, true
}
