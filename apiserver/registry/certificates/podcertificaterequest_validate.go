package certificates

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// Limits of requests.
const (
	mostKeyBytes     = 10 << 10
	mostUID          = 128
	shortest         = 60 * 60           // seconds that a certificate lives at least
	longest          = 91 * 24 * 60 * 60 // and at most
	longestOfCluster = 24 * 60 * 60      // of the signers of Kubernetes itself
)

var (
	specPath    = field.NewPath("spec")
	stubRequest = specPath.Child("stubPKCS10Request")
)

// podRequest checks what a kubelet asks for.
func podRequest(r *certificatesv1.PodCertificateRequest) field.ErrorList {
	s := &r.Spec
	errs := validation.SignerName(specPath.Child("signerName"), s.SignerName)
	if notes := s.UnverifiedUserAnnotations; notes != nil {
		at := specPath.Child("unverifiedUserAnnotations")
		for key := range notes {
			errs = append(errs, utilvalidation.IsDomainPrefixedKey(at, strings.ToLower(key))...)
		}
		if apivalidation.ValidateAnnotationsSize(notes) != nil {
			errs = append(errs, field.TooLong(at, "", apivalidation.TotalAnnotationSizeLimitB))
		}
	}
	for _, o := range []struct {
		kind, name, uid string
		rule            apivalidation.ValidateNameFunc
	}{
		{"pod", s.PodName, string(s.PodUID), apivalidation.NameIsDNSSubdomain},
		{"serviceAccount", s.ServiceAccountName, string(s.ServiceAccountUID), apivalidation.ValidateServiceAccountName},
		{"node", string(s.NodeName), string(s.NodeUID), apivalidation.NameIsDNSSubdomain},
	} {
		errs = append(errs, validation.ObjectName(o.name, o.rule, specPath.Child(o.kind+"Name"))...)
		switch at := specPath.Child(o.kind + "UID"); {
		case o.uid == "":
			errs = append(errs, field.Invalid(at, o.uid, "must not be empty"))
		case len(o.uid) > mostUID:
			errs = append(errs, field.TooLong(at, o.uid, mostUID))
		}
	}
	at := specPath.Child("maxExpirationSeconds")
	if s.MaxExpirationSeconds == nil {
		return append(errs, field.Required(at, "must be set"))
	}
	most := int32(longest)
	if domain, _, _ := strings.Cut(s.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		most = longestOfCluster
	}
	if n := *s.MaxExpirationSeconds; n < shortest || n > most {
		errs = append(errs, field.Invalid(at, n, fmt.Sprintf("must be in the range [%d, %d]", shortest, most)))
	}
	switch p := proofOf(r); {
	case len(s.StubPKCS10Request) == 0 && len(p.PKIXPublicKey) > 0 && len(p.ProofOfPossession) > 0:
		return append(errs, proofErrors(p, string(s.PodUID))...)
	case len(s.StubPKCS10Request) == 0 || !p.empty():
		return append(errs, field.Invalid(specPath, field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"))
	}
	return append(errs, stubErrors(s)...)
}

// stubErrors checks a request without content, signed with the private key.
func stubErrors(s *certificatesv1.PodCertificateRequestSpec) field.ErrorList {
	if len(s.StubPKCS10Request) > mostKeyBytes {
		return field.ErrorList{field.TooLong(stubRequest, s.StubPKCS10Request, mostKeyBytes)}
	}
	request, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
	if err != nil {
		return field.ErrorList{field.Invalid(stubRequest, field.OmitValueType{}, "must be a valid PKCS#10 CSR")}
	}
	if e := keyKind(request.PublicKey); e != nil {
		return field.ErrorList{e}
	}
	if request.CheckSignature() != nil {
		return field.ErrorList{field.Invalid(stubRequest, field.OmitValueType{}, "invalid signature")}
	}
	return nil
}

// keyKind checks that a key is of a kind and size that signers take.
func keyKind(key any) *field.Error {
	switch key := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if c := key.Curve; c != elliptic.P256() && c != elliptic.P384() && c != elliptic.P521() {
			return field.Invalid(stubRequest, "curve "+c.Params().Name, "elliptic public keys must use curve P256, P384, or P521")
		}
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != 3072 && bits != 4096 {
			return field.Invalid(stubRequest, fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
		}
	default:
		return field.Invalid(stubRequest, field.OmitValueType{}, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
	}
	return nil
}
