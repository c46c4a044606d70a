package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

type podCertificateStatus = certificatesv1.PodCertificateRequestStatus

var (
	statusPath = field.NewPath("status")
	chainPath  = statusPath.Child("certificateChain")
	ends       = []string{certificatesv1.PodCertificateRequestConditionTypeIssued, certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed}
)

const mostChainBytes = 100 << 10

// podRequestStatus checks what a signer answers: once, and for good.
func podRequestStatus(r, old *certificatesv1.PodCertificateRequest, now time.Time) field.ErrorList {
	errs, end := ending(r.Status.Conditions)
	if len(errs) > 0 {
		return errs
	}
	fixed := func(same podCertificateStatus, detail string) field.ErrorList {
		if validation.Equal(r.Status, same) {
			return nil
		}
		return field.ErrorList{field.Invalid(statusPath, field.OmitValueType{}, detail)}
	}
	if _, was := ending(old.Status.Conditions); was != "" {
		return fixed(old.Status, "immutable after PodCertificateRequest is issued, denied, or failed")
	}
	switch end {
	case "":
		return fixed(old.Status, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case ends[0]:
		return issuedToPod(r, now)
	}
	return fixed(podCertificateStatus{Conditions: r.Status.Conditions}, "non-condition status fields must be empty when denying or failing the PodCertificateRequest")
}

// ending returns which end conditions tell of, "" for none.
func ending(conditions []metav1.Condition) (errs field.ErrorList, end string) {
	at := statusPath.Child("conditions")
	for i, c := range conditions {
		p := at.Child(fmt.Sprintf("[%d]", i)) // upstream's path has the dot as well
		switch c.Type {
		case ends[0], ends[1], ends[2]:
			if end != "" {
				errs = append(errs, field.Invalid(p.Child("type"), c.Type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`))
			}
			if end = c.Type; c.Status != metav1.ConditionTrue {
				errs = append(errs, field.NotSupported(p.Child("status"), c.Status, []metav1.ConditionStatus{metav1.ConditionTrue}))
			}
		default:
			errs = append(errs, field.NotSupported(p.Child("type"), c.Type, ends))
		}
	}
	return append(errs, metav1validation.ValidateConditions(conditions, at)...), end
}

// issuedToPod checks a certificate against what was asked for.
func issuedToPod(r *certificatesv1.PodCertificateRequest, now time.Time) field.ErrorList {
	s := &r.Status
	bad := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(chainPath, s.CertificateChain, detail)}
	}
	if len(s.CertificateChain) > mostChainBytes {
		return field.ErrorList{field.TooLong(chainPath, s.CertificateChain, mostChainBytes)}
	}
	block, rest := pem.Decode([]byte(s.CertificateChain))
	switch {
	case block == nil:
		return bad("issued certificate chain must contain at least one certificate")
	case block.Type != "CERTIFICATE":
		return bad("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return bad("leaf certificate does not parse as valid X.509")
	}
	errs := names(leaf)
	request, err := x509.ParseCertificateRequest(r.Spec.StubPKCS10Request)
	if err != nil {
		return append(errs, field.Invalid(stubRequest, field.OmitValueType{}, "must be a valid PKCS#10 CSR"))
	}
	if k, ok := request.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); ok && !k.Equal(leaf.PublicKey) {
		return append(errs, bad("leaf certificate was not issued to the requested public key")...)
	}
	if errs = append(errs, times(r, leaf, now)...); len(errs) > 0 {
		return errs
	}
	for {
		if block, rest = pem.Decode(rest); block == nil {
			return nil
		}
		if block.Type != "CERTIFICATE" {
			return bad("issued certificate chain must consist entirely of CERTFICATE PEM blocks") // upstream's spelling
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return bad("intermediate certificate does not parse as valid X.509")
		}
	}
}

func names(leaf *x509.Certificate) (errs field.ErrorList) {
	for _, name := range leaf.DNSNames {
		if name == "" {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate should not contain empty DNSName"))
		}
		if strings.Contains(name, "..") {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate's DNSName should not contain '..'"))
		}
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate's DNSName should not start or end with '.'"))
		}
	}
	for _, address := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(address); err != nil {
			errs = append(errs, field.Invalid(chainPath, address, "leaf certificate should not contain invalid EmailAddress"))
		}
	}
	return errs
}

// times checks that the status tells the certificate's times, and that those are as asked.
func times(r *certificatesv1.PodCertificateRequest, leaf *x509.Certificate, now time.Time) (errs field.ErrorList) {
	s := &r.Status
	const consistent = "must be present and consistent with the issued certificate"
	for _, t := range []struct {
		name, detail string
		missing      bool
	}{
		{"notBefore", consistent, s.NotBefore == nil},
		{"notAfter", consistent, s.NotAfter == nil},
		{"beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]", s.BeginRefreshAt == nil},
	} {
		if t.missing {
			errs = append(errs, field.Required(statusPath.Child(t.name), t.detail))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	before, after, refresh := s.NotBefore.Time, s.NotAfter.Time, s.BeginRefreshAt.Time
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	one := func(at *field.Path, value any, detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, value, detail)}
	}
	switch most := *r.Spec.MaxExpirationSeconds; {
	case !before.Equal(leaf.NotBefore):
		return one(statusPath.Child("notBefore"), before, "must be set to the NotBefore time encoded in the leaf certificate")
	case now.Sub(before).Abs() > 5*time.Minute:
		return one(statusPath.Child("notBefore"), before, "must be set to within 5 minutes of kube-apiserver's current time")
	case !after.Equal(leaf.NotAfter):
		return one(statusPath.Child("notAfter"), after, "must be set to the NotAfter time encoded in the leaf certificate")
	case lifetime < time.Hour:
		return one(chainPath, lifetime, "leaf certificate lifetime must be >= 1 hour")
	case lifetime > time.Duration(most)*time.Second:
		return one(chainPath, lifetime, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", most))
	case refresh.Before(before.Add(10 * time.Minute)):
		return one(statusPath.Child("beginRefreshAt"), refresh, "must be at least 10 minutes after status.notBefore")
	case refresh.After(after.Add(-10 * time.Minute)):
		return one(statusPath.Child("beginRefreshAt"), refresh, "must be at least 10 minutes before status.notAfter")
	}
	return nil
}
