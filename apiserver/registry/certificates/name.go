package certificates

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
)

// anyName accepts every name, as upstream does for CertificateSigningRequest.
func anyName(string, bool) []string { return nil }

// clusterTrustBundleName checks what follows the signer's prefix; whether the
// prefix is that of the signer is checked with the object.
func clusterTrustBundleName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSSubdomain(name[strings.LastIndexByte(name, ':')+1:], prefix)
}
