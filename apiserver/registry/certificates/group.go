package certificates

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(env registry.Env) []*registry.Resource {
	return []*registry.Resource{
		certificateSigningRequests(),
		clusterTrustBundles(),
		podCertificateRequests(env),
	}
}

// version is the group and version in which the kinds are stored.
var version = certificatesv1.SchemeGroupVersion
