package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Longest life of a pod's certificate: 91 days, and one day for signers of Kubernetes.
const (
	maxCertificateSeconds           = 91 * 24 * 60 * 60
	maxKubernetesCertificateSeconds = 24 * 60 * 60
)

var certificateKeyTypes = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

// projected checks a projected volume: each source alone, and that no two of
// them write the same file.
func projected(e *errorList, p *corev1.ProjectedVolumeSource, at *field.Path) {
	fileMode(e, p.DefaultMode, at, "defaultMode")
	fileOwner(e, p.DefaultUser, at, "defaultUser")
	paths := names{}
	// taken reports a path that is used twice; value is what upstream shows.
	taken := func(path, value string) {
		if paths.seen(path) {
			e.invalid(at, value, "conflicting duplicate paths")
		}
	}
	for i := range p.Sources {
		s, source := &p.Sources[i], at.Child("sources").Index(i)
		kinds := 0
		if s.Secret != nil {
			kinds++
			needed(e, source.Child("secret"), "name", s.Secret.Name)
			keysToPaths(e, s.Secret.Items, source.Child("secret", "items"), func(path string) { taken(path, s.Secret.Name) })
		}
		if s.ConfigMap != nil {
			kinds++
			needed(e, source.Child("configMap"), "name", s.ConfigMap.Name)
			keysToPaths(e, s.ConfigMap.Items, source.Child("configMap", "items"), func(path string) { taken(path, s.ConfigMap.Name) })
		}
		if s.DownwardAPI != nil {
			kinds++
			for j := range s.DownwardAPI.Items {
				file := &s.DownwardAPI.Items[j]
				downwardFile(e, file, source.Child("downwardAPI"))
				if file.Path != "" {
					taken(file.Path, file.Path)
				}
			}
		}
		if s.ServiceAccountToken != nil {
			kinds++
			tokenProjection(e, s.ServiceAccountToken, source.Child("serviceAccountToken"), at.Child("path"))
		}
		if s.ClusterTrustBundle != nil {
			kinds++
			trustBundle(e, s.ClusterTrustBundle, source.Child("clusterTrustBundle"))
			taken(s.ClusterTrustBundle.Path, s.ClusterTrustBundle.Path)
		}
		if s.PodCertificate != nil {
			kinds++
			podCertificate(e, s.PodCertificate, source.Child("podCertificate"), taken)
		}
		if kinds > 1 {
			e.forbidden(source, "may not specify more than 1 volume type per source")
		}
	}
}

func tokenProjection(e *errorList, t *corev1.ServiceAccountTokenProjection, at, path *field.Path) {
	fileOwner(e, t.User, at, "user")
	switch expiration := at.Child("expirationSeconds"); {
	case t.ExpirationSeconds == nil:
		e.required(expiration, "")
	case *t.ExpirationSeconds < 10*60:
		e.invalid(expiration, *t.ExpirationSeconds, "may not specify a duration less than 10 minutes")
	case *t.ExpirationSeconds > 1<<32:
		e.invalid(expiration, *t.ExpirationSeconds, "may not specify a duration larger than 2^32 seconds")
	}
	if t.Path == "" {
		e.required(path, "")
		return
	}
	e.add(volumePath(t.Path, path)...)
}

func trustBundle(e *errorList, b *corev1.ClusterTrustBundleProjection, at *field.Path) {
	fileOwner(e, b.User, at, "user")
	switch {
	case b.Name != nil && b.SignerName != nil:
		e.invalid(at, b, "only one of name and signerName may be used")
	case b.Name != nil:
		if *b.Name == "" {
			e.required(at.Child("name"), "must be a valid object name")
		}
		for _, m := range ClusterTrustBundleName(*b.Name, signerOfBundle(*b.Name)) {
			e.invalid(at.Child("name"), *b.Name, fmt.Sprintf("not a valid clustertrustbundlename: %v", m))
		}
		if b.LabelSelector != nil {
			e.invalid(at.Child("labelSelector"), b.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case b.SignerName != nil:
		if *b.SignerName == "" {
			e.required(at.Child("signerName"), "must be a valid signer name")
		}
		e.add(SignerName(at.Child("signerName"), *b.SignerName)...)
		e.add(metav1validation.ValidateLabelSelector(b.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("labelSelector"))...)
	default:
		e.required(at, "either name or signerName must be specified")
	}
	needed(e, at, "path", b.Path)
	e.add(volumePath(b.Path, at.Child("path"))...)
}

func podCertificate(e *errorList, c *corev1.PodCertificateProjection, at *field.Path, taken func(path, value string)) {
	fileOwner(e, c.User, at, "user")
	e.add(SignerName(at.Child("signerName"), c.SignerName)...)
	for key := range c.UserAnnotations {
		e.add(validation.IsDomainPrefixedKey(at.Child("userAnnotations"), strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(c.UserAnnotations) != nil {
		e.add(field.TooLong(at.Child("userAnnotations"), "", apivalidation.TotalAnnotationSizeLimitB))
	}
	if !slices.Contains(certificateKeyTypes, c.KeyType) {
		e.add(field.NotSupported(at.Child("keyType"), c.KeyType, certificateKeyTypes))
	}
	if seconds := c.MaxExpirationSeconds; seconds != nil {
		longest := int32(maxCertificateSeconds)
		if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			longest = maxKubernetesCertificateSeconds
		}
		if *seconds < 3600 {
			e.invalid(at.Child("maxExpirationSeconds"), *seconds, "if provided, maxExpirationSeconds must be >= 3600")
		}
		if *seconds > longest {
			e.invalid(at.Child("maxExpirationSeconds"), *seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest))
		}
	}
	files := 0
	for _, f := range []struct{ name, path string }{
		{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath}, {"certificateChainPath", c.CertificateChainPath},
	} {
		if f.path == "" {
			continue
		}
		files++
		e.add(volumePath(f.path, at.Child(f.name))...)
		taken(f.path, f.path)
	}
	if files == 0 {
		e.required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
	}
}

// downwardFile checks a file of a downward API volume. Upstream reports all
// files of a volume at the same path, without their index.
func downwardFile(e *errorList, f *corev1.DownwardAPIVolumeFile, at *field.Path) {
	needed(e, at, "path", f.Path)
	e.add(volumePath(f.Path, at.Child("path"))...)
	switch {
	case f.FieldRef != nil:
		objectField(e, f.FieldRef, volumeFields, at.Child("fieldRef"))
		if f.ResourceFieldRef != nil {
			e.invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case f.ResourceFieldRef != nil:
		resourceField(e, f.ResourceFieldRef, at.Child("resourceFieldRef"), true)
	default:
		e.required(at, "one of fieldRef and resourceFieldRef is required")
	}
	fileMode(e, f.Mode, at, "mode")
	fileOwner(e, f.User, at, "user")
}

// signerOfBundle returns the signer in the name of a ClusterTrustBundle, "" if
// it has none.
func signerOfBundle(name string) string {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return ""
	}
	return strings.ReplaceAll(name[:i], ":", "/")
}

// ClusterTrustBundleName checks the name of a bundle of a signer ("" for none):
// the signer's name with ':' for '/' is its prefix.
func ClusterTrustBundleName(name, signer string) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, false)
	}
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, prefix)}
	}
	return apivalidation.NameIsDNSSubdomain(rest, false)
}

// SignerName checks the name of a certificate signer, "example.com/name".
func SignerName(at *field.Path, name string) field.ErrorList {
	var e errorList
	if name == "" {
		e.required(at, "")
		return e.list
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		e.invalid(at, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return e.list
	}
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		e.add(field.TooLong(at, "", validation.DNS1123SubdomainMaxLength))
	}
	each := func(value string, check func(string) []string) {
		for part := range strings.SplitSeq(value, ".") {
			bad := check(part)
			for _, m := range bad {
				e.invalid(at, value, fmt.Sprintf("validating label %q: %s", part, m))
			}
			if len(bad) > 0 {
				return
			}
		}
	}
	each(domain, validation.IsDNS1123Label)
	if !strings.Contains(domain, ".") {
		e.invalid(at, domain, "should be a domain with at least two segments separated by dots")
	}
	each(rest, validation.IsDNS1123Subdomain)
	longest := 2*validation.DNS1123SubdomainMaxLength + validation.DNS1123LabelMaxLength + 2
	if len(name) > longest {
		e.add(field.TooLong(at, "", longest))
	}
	return e.list
}
