package certificates

import (
	"context"

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
			ValidateCreate: func(_ context.Context, b *certificatesv1.ClusterTrustBundle) field.ErrorList { return bundle(b) },
			ValidateChange: func(_ context.Context, b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
				return append(bundle(b), validation.Immutable(b.Spec.SignerName, old.Spec.SignerName, field.NewPath("spec", "signerName"))...)
			},
			Name:  clusterTrustBundleName,
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

func bundle(b *certificatesv1.ClusterTrustBundle) field.ErrorList {
	var errs field.ErrorList
	if signer := b.Spec.SignerName; signer != "" {
		errs = append(errs, validation.SignerName(field.NewPath("spec", "signerName"), signer)...)
	}
	for _, m := range validation.ClusterTrustBundleName(b.Name, b.Spec.SignerName) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), b.Name, m))
	}
	if b.Spec.TrustBundle == "" {
		errs = append(errs, field.Invalid(field.NewPath("spec", "trustBundle"), "<value omitted>", "at least one trust anchor must be provided"))
	}
	return errs
}
