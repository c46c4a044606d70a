package certificates

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var podCertificateRequestHalves = kind.Split(func(obj *certificatesv1.PodCertificateRequest) (*certificatesv1.PodCertificateRequestSpec, *certificatesv1.PodCertificateRequestStatus) {
	return &obj.Spec, &obj.Status
})

func podCertificateRequests(env registry.Env) *registry.Resource {
	beta := betaPodRequests()
	s := podCertificateRequestHalves.MainWithoutGeneration()
	s.Fixed.NoUnconditionalUpdate = true
	s.DefaultFunc = func(r *certificatesv1.PodCertificateRequest) {
		if r.Spec.MaxExpirationSeconds == nil {
			r.Spec.MaxExpirationSeconds = new(int32(24 * 60 * 60))
		}
	}
	s.ValidateCreate = func(_ context.Context, r *certificatesv1.PodCertificateRequest) field.ErrorList { return podRequest(r) }
	s.ValidateChange = func(_ context.Context, r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
		if errs := validation.Immutable(r.Spec, old.Spec, field.NewPath("spec")); len(errs) > 0 {
			return errs
		}
		return proofChange(r, old)
	}
	status := podCertificateRequestHalves.StatusKeepingMeta()
	status.ValidateChange = func(ctx context.Context, r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
		if errs := podRequestStatus(r, old, time.Now()); len(errs) > 0 || validation.Equal(r.Status, old.Status) {
			return errs
		}
		return maySign(ctx, env.Authz, old.Spec.SignerName)
	}
	return &registry.Resource{
		GVR:              version.WithResource("podcertificaterequests"),
		Kind:             "PodCertificateRequest",
		Singular:         "podcertificaterequest",
		Namespaced:       true,
		New:              kind.Make[certificatesv1.PodCertificateRequest],
		NewList:          kind.Make[certificatesv1.PodCertificateRequestList],
		Strategy:         s,
		Status:           status,
		Also:             []registry.Served{beta},
		StoredAs:         &beta,
		SelectableFields: []string{"spec.signerName", "spec.podName", "spec.nodeName"},
		Fields: func(obj runtime.Object) fields.Set {
			spec := &obj.(*certificatesv1.PodCertificateRequest).Spec
			return fields.Set{"spec.signerName": spec.SignerName, "spec.podName": spec.PodName, "spec.nodeName": string(spec.NodeName)}
		},
	}
}
