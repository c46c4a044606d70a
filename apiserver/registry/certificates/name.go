package certificates

import apivalidation "k8s.io/apimachinery/pkg/api/validation"

// anyName accepts every name, as upstream does for CertificateSigningRequest.
func anyName(string, bool) []string { return nil }

// clusterTrustBundleName checks the name without its signer prefix rule, which
// needs the object and is checked by validation.
func clusterTrustBundleName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}
