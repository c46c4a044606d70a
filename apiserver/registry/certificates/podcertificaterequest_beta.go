package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

// The beta version, which is off by default but is the one that is stored, knows a key
// and a proof in place of a stub request. In the version that is served, where there are
// no such fields, an annotation stands for them.
const betaKey = "certificates.k8s.io/v1beta1-public-key"

// betaProof is a public key with what shows that its owner has the private one.
type betaProof struct {
	PKIXPublicKey     []byte `json:"pkixPublicKey,omitempty"`
	ProofOfPossession []byte `json:"proofOfPossession,omitempty"`
}

func (p betaProof) empty() bool { return len(p.PKIXPublicKey)+len(p.ProofOfPossession) == 0 }

func proofOf(r *certificatesv1.PodCertificateRequest) (p betaProof) {
	if text, ok := r.Annotations[betaKey]; ok {
		_ = json.Unmarshal([]byte(text), &p) // what is none is refused for having none
	}
	return p
}

func betaPodRequests() registry.Served {
	beta := kind.Alike[certificatesv1beta1.PodCertificateRequest, certificatesv1beta1.PodCertificateRequestList, certificatesv1.PodCertificateRequest](certificatesv1beta1.SchemeGroupVersion)
	from, to := beta.From, beta.To
	beta.From = func(stored runtime.Object) (runtime.Object, error) {
		out, err := from(stored)
		if err != nil {
			return nil, err
		}
		r, p := out.(*certificatesv1beta1.PodCertificateRequest), proofOf(stored.(*certificatesv1.PodCertificateRequest))
		r.Spec.PKIXPublicKey, r.Spec.ProofOfPossession = p.PKIXPublicKey, p.ProofOfPossession //nolint:staticcheck // still to be kept
		if delete(r.Annotations, betaKey); len(r.Annotations) == 0 {
			r.Annotations = nil
		}
		return r, nil
	}
	beta.To = func(served runtime.Object) (runtime.Object, error) {
		out, err := to(served)
		if err != nil {
			return nil, err
		}
		spec := &served.(*certificatesv1beta1.PodCertificateRequest).Spec
		p := betaProof{spec.PKIXPublicKey, spec.ProofOfPossession} //nolint:staticcheck // still to be kept
		meta := &out.(*certificatesv1.PodCertificateRequest).ObjectMeta
		delete(meta.Annotations, betaKey)
		if p.empty() {
			return out, nil
		}
		text, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("keep the key of a pod's request: %w", err)
		}
		metav1.SetMetaDataAnnotation(meta, betaKey, string(text))
		return out, nil
	}
	return beta
}

// proofChange refuses another key: like all of the specification it stays.
func proofChange(r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
	if validation.Equal(proofOf(r), proofOf(old)) {
		return nil
	}
	return validation.Immutable(1, 2, specPath)
}

// proofErrors checks that the private key has signed the pod's UID.
func proofErrors(p betaProof, uid string) field.ErrorList {
	at, proof := specPath.Child("pkixPublicKey"), specPath.Child("proofOfPossession")
	for _, part := range []struct {
		at    *field.Path
		value []byte
	}{{at, p.PKIXPublicKey}, {proof, p.ProofOfPossession}} {
		if len(part.value) > mostKeyBytes {
			return field.ErrorList{field.TooLong(part.at, part.value, mostKeyBytes)}
		}
	}
	key, err := x509.ParsePKIXPublicKey(p.PKIXPublicKey)
	if err != nil {
		return field.ErrorList{field.Invalid(at, p.PKIXPublicKey, "must be a valid PKIX-serialized public key")}
	}
	sum, valid := sha256.Sum256([]byte(uid)), false
	switch key := key.(type) {
	case ed25519.PublicKey:
		valid = ed25519.Verify(key, []byte(uid), p.ProofOfPossession)
	case *ecdsa.PublicKey:
		if c := key.Curve; c != elliptic.P256() && c != elliptic.P384() && c != elliptic.P521() {
			return field.ErrorList{field.Invalid(at, "curve "+c.Params().Name, "elliptic public keys must use curve P256 or P384")}
		}
		valid = ecdsa.VerifyASN1(key, sum[:], p.ProofOfPossession)
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != 3072 && bits != 4096 {
			return field.ErrorList{field.Invalid(at, fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")}
		}
		valid = rsa.VerifyPSS(key, crypto.SHA256, sum[:], p.ProofOfPossession, nil) == nil
	default:
		return field.ErrorList{field.Invalid(at, p.PKIXPublicKey, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")}
	}
	if !valid {
		return field.ErrorList{field.Invalid(proof, field.OmitValueType{}, "could not verify proof-of-possession signature")}
	}
	return nil
}
