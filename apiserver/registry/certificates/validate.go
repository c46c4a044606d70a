package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// usages are the key usages of RFC 5280 that can be asked for, in order.
var usages = []certificatesv1.KeyUsage{
	certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageContentCommitment, certificatesv1.UsageCRLSign, certificatesv1.UsageDataEncipherment, certificatesv1.UsageDecipherOnly,
	certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection, certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem,
	certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC, certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME,
	certificatesv1.UsageServerAuth, certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
}

func validateRequest(r *csr) field.ErrorList {
	var errs field.ErrorList
	at, spec := field.NewPath("spec"), &r.Spec
	if err := parseRequest(spec.Request); err != nil {
		errs = append(errs, field.Invalid(at.Child("request"), spec.Request, err.Error()))
	}
	if len(spec.Usages) == 0 {
		errs = append(errs, field.Required(at.Child("usages"), ""))
	}
	for i, usage := range spec.Usages {
		p := at.Child("usages").Index(i)
		if !slices.Contains(usages, usage) {
			errs = append(errs, field.NotSupported(p, usage, usages))
		}
		if slices.Contains(spec.Usages[:i], usage) {
			errs = append(errs, field.Duplicate(p, usage))
		}
	}
	if spec.SignerName == "kubernetes.io/legacy-unknown" {
		errs = append(errs, field.Invalid(at.Child("signerName"), spec.SignerName, "the legacy signerName is not allowed via this API version"))
	} else {
		errs = append(errs, validation.SignerName(at.Child("signerName"), spec.SignerName)...)
	}
	if s := spec.ExpirationSeconds; s != nil && *s < 600 {
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

func parseRequest(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if err := request.CheckSignature(); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// conditionRules checks conditions; what was wrong before may stay as it is.
func conditionRules(conditions, old []certificatesv1.CertificateSigningRequestCondition, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	has := func(list []certificatesv1.CertificateSigningRequestCondition, t certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(list, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == t })
	}
	twice := false
	for i := range old {
		twice = twice || has(old[:i], old[i].Type)
	}
	for i, c := range conditions {
		p := at.Index(i)
		if c.Type == "" && !has(old, "") {
			errs = append(errs, field.Required(p.Child("type"), ""))
		}
		statuses := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			statuses = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		switch {
		case c.Status == "":
			errs = append(errs, field.Required(p.Child("status"), ""))
		case !slices.Contains(statuses, c.Status):
			errs = append(errs, field.NotSupported(p.Child("status"), c.Status, statuses))
		}
		if !twice && has(conditions[:i], c.Type) {
			errs = append(errs, field.Duplicate(p.Child("type"), c.Type))
		}
	}
	const approved, denied = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied
	if has(conditions, approved) && has(conditions, denied) && !(has(old, approved) && has(old, denied)) {
		errs = append(errs, field.Invalid(at, `{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}`,
			"must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`"))
	}
	return errs
}

// issued checks the certificates that a signer has issued, as PEM.
func issued(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	blocks := 0
	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) != 0 {
			return errors.New("no PEM block headers are permitted")
		}
		certs, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certs) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		blocks, data = blocks+1, rest
	}
	if blocks == 0 {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}
