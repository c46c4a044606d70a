package certificates

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func clusterTrustBundles() *registry.Resource {
	beta := kind.Alike[certificatesv1beta1.ClusterTrustBundle, certificatesv1beta1.ClusterTrustBundleList, certificatesv1.ClusterTrustBundle](certificatesv1beta1.SchemeGroupVersion)
	return &registry.Resource{
		GVR:      version.WithResource("clustertrustbundles"),
		Kind:     "ClusterTrustBundle",
		Singular: "clustertrustbundle",
		New:      kind.Make[certificatesv1.ClusterTrustBundle],
		NewList:  kind.Make[certificatesv1.ClusterTrustBundleList],
		Strategy: registry.Funcs[*certificatesv1.ClusterTrustBundle]{
			ValidateCreate: func(_ context.Context, b *certificatesv1.ClusterTrustBundle) field.ErrorList { return bundle(b, nil) },
			ValidateChange: func(_ context.Context, b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
				return append(bundle(b, old), validation.Immutable(b.Spec.SignerName, old.Spec.SignerName, field.NewPath("spec", "signerName"))...)
			},
			Name:  func(string, bool) []string { return nil }, // it depends on the signer, and is checked with the object
			Fixed: registry.Traits{NoUnconditionalUpdate: true},
		},
		Also:             []registry.Served{beta},
		StoredAs:         &beta,
		SelectableFields: []string{"spec.signerName"},
		Fields: func(obj runtime.Object) fields.Set {
			return fields.Set{"spec.signerName": obj.(*certificatesv1.ClusterTrustBundle).Spec.SignerName}
		},
	}
}

func bundle(b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
	var errs field.ErrorList
	if signer := b.Spec.SignerName; signer != "" {
		errs = append(errs, validation.SignerName(field.NewPath("spec", "signerName"), signer)...)
	}
	if b.Name != "" {
		for _, m := range validation.ClusterTrustBundleName(b.Name, b.Spec.SignerName) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), b.Name, m))
		}
	}
	if old == nil || b.Spec.TrustBundle != old.Spec.TrustBundle {
		errs = append(errs, anchors(b.Spec.TrustBundle, field.NewPath("spec", "trustBundle"))...)
	}
	return errs
}

// mostAnchors is how large a bundle may be, in bytes.
const mostAnchors = 1 << 20

// anchors checks trust anchors: certificates of authorities, each once, as PEM.
func anchors(text string, at *field.Path) (errs field.ErrorList) {
	if len(text) > mostAnchors {
		return field.ErrorList{field.TooLong(at, "", mostAnchors)}
	}
	bad := func(format string, args ...any) {
		errs = append(errs, field.Invalid(at, "<value omitted>", fmt.Sprintf(format, args...)))
	}
	seen := map[string][]int{}
	var order []string
	rest := []byte(text)
	for i := 0; ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			bad("entry %d has bad block type: %v", i, block.Type)
			continue
		}
		if len(block.Headers) != 0 {
			bad("entry %d has PEM block headers", i)
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			bad("entry %d does not parse as X.509", i)
		case !cert.IsCA:
			bad("entry %d does not have the CA bit set", i)
		case !cert.BasicConstraintsValid:
			bad("entry %d has invalid basic constraints", i)
		default:
			key := string(block.Bytes)
			if seen[key] == nil {
				order = append(order, key)
			}
			seen[key] = append(seen[key], i)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	if len(order) == 0 {
		bad("at least one trust anchor must be provided")
	}
	for _, key := range order {
		if len(seen[key]) > 1 {
			bad("duplicate trust anchor (indices %v)", seen[key])
		}
	}
	return errs
}
