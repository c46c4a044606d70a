package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var certificateSigningRequestHalves = kind.Split(func(obj *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequestSpec, *certificatesv1.CertificateSigningRequestStatus) {
	return &obj.Spec, &obj.Status
})

func certificateSigningRequests() *registry.Resource {
	s := certificateSigningRequestHalves.MainWithoutGeneration()
	s.Name = anyName
	return &registry.Resource{
		GVR:        version.WithResource("certificatesigningrequests"),
		Kind:       "CertificateSigningRequest",
		Singular:   "certificatesigningrequest",
		ShortNames: []string{"csr"},
		New:        kind.Make[certificatesv1.CertificateSigningRequest],
		NewList:    kind.Make[certificatesv1.CertificateSigningRequestList],
		Strategy:   s,
		Status:     certificateSigningRequestHalves.Status(),
	}
}
