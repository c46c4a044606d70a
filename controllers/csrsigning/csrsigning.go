package csrsigning

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/periplus/periplus/controllers"
)

// backdate allows for clocks that run behind.
const backdate = 5 * time.Minute

type csr = certificatesv1.CertificateSigningRequest

// Controller declares the signer. Its keys are requests.
func Controller() controllers.Controller {
	requests := []schema.GroupVersionResource{certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")}
	return controllers.Controller{
		Name: "certificatesigningrequest-signing-controller", Reads: requests, Writes: requests, Workers: 1, New: build,
	}
}

type reconciler struct {
	*controllers.Setup
	requests certificateslisters.CertificateSigningRequestLister
	ca       *x509.Certificate
	key      *ecdsa.PrivateKey
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if len(s.Options.SigningCert) == 0 || len(s.Options.SigningKey) == 0 {
		return nil, fmt.Errorf("no signing certificate: %w", controllers.ErrNotConfigured)
	}
	pair, err := tls.X509KeyPair(s.Options.SigningCert, s.Options.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("signing certificate: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("signing key: %T is not an ECDSA key", pair.PrivateKey)
	}
	informer := s.Informers.Certificates().V1().CertificateSigningRequests()
	r := &reconciler{Setup: s, requests: informer.Lister(), ca: pair.Leaf, key: key}
	s.Watch(informer.Informer(), controllers.On(func(_, now *csr) {
		if now != nil && pending(now) {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	return r, nil
}

// pending says whether a request is approved and not yet served.
func pending(c *csr) bool {
	approved := false
	for _, x := range c.Status.Conditions {
		switch x.Type {
		case certificatesv1.CertificateApproved:
			approved = true
		case certificatesv1.CertificateFailed, certificatesv1.CertificateDenied:
			return false
		}
	}
	return approved && len(c.Status.Certificate) == 0 && rules[c.Spec.SignerName] != nil
}

// Reconcile issues the certificate, or says why it cannot be.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	c, err := r.requests.Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && !pending(c) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	done := c.DeepCopy()
	certificate, err := r.sign(c, r.Clock.Now())
	if err != nil {
		done.Status.Conditions = append(done.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(),
		})
	}
	done.Status.Certificate = certificate
	_, err = r.Client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, done, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return 0, err
}

func (r *reconciler) sign(c *csr, now time.Time) ([]byte, error) {
	block, _ := pem.Decode(c.Spec.Request)
	if block == nil {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := rules[c.Spec.SignerName](request, c.Spec.Usages); err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	valid := r.Options.CertificateLife
	if s := c.Spec.ExpirationSeconds; s != nil {
		valid = min(valid, max(10*time.Minute, time.Duration(*s)*time.Second))
	}
	until := now.Add(valid)
	if until.After(r.ca.NotAfter) {
		until = r.ca.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: request.Subject, NotBefore: now.Add(-backdate), NotAfter: until, BasicConstraintsValid: true,
		DNSNames: request.DNSNames, IPAddresses: request.IPAddresses, EmailAddresses: request.EmailAddresses, URIs: request.URIs,
	}
	for _, u := range c.Spec.Usages {
		switch u {
		case certificatesv1.UsageDigitalSignature:
			template.KeyUsage |= x509.KeyUsageDigitalSignature
		case certificatesv1.UsageKeyEncipherment:
			template.KeyUsage |= x509.KeyUsageKeyEncipherment
		case certificatesv1.UsageServerAuth:
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		case certificatesv1.UsageClientAuth:
			template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
		default:
			return nil, fmt.Errorf("usage %q is not supported by this signer", u)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, r.ca, request.PublicKey, r.key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// rules are what each signer accepts.
var rules = map[string]func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error{
	certificatesv1.KubeAPIServerClientSignerName: func(_ *x509.CertificateRequest, u []certificatesv1.KeyUsage) error {
		return only(u, certificatesv1.UsageClientAuth)
	},
	certificatesv1.KubeAPIServerClientKubeletSignerName: func(r *x509.CertificateRequest, u []certificatesv1.KeyUsage) error {
		if len(r.DNSNames)+len(r.IPAddresses) > 0 {
			return errors.New("DNS and IP subjectAltNames are not allowed")
		}
		return errors.Join(node(r), only(u, certificatesv1.UsageClientAuth))
	},
	certificatesv1.KubeletServingSignerName: func(r *x509.CertificateRequest, u []certificatesv1.KeyUsage) error {
		if len(r.DNSNames)+len(r.IPAddresses) == 0 {
			return errors.New("DNS or IP subjectAltName is required")
		}
		return errors.Join(node(r), only(u, certificatesv1.UsageServerAuth))
	},
}

// node checks that a request is a node's.
func node(r *x509.CertificateRequest) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{"system:nodes"}):
		return errors.New("subject organization is not system:nodes")
	case !strings.HasPrefix(r.Subject.CommonName, "system:node:"):
		return errors.New("subject common name does not begin with system:node: ")
	case len(r.EmailAddresses) > 0:
		return errors.New("Email subjectAltNames are not allowed") //nolint:staticcheck // upstream's wording
	case len(r.URIs) > 0:
		return errors.New("URI subjectAltNames are not allowed")
	}
	return nil
}

// only checks that the usages are signing, enciphering and the purpose, which is required.
func only(usages []certificatesv1.KeyUsage, purpose certificatesv1.KeyUsage) error {
	for _, u := range usages {
		if u != purpose && u != certificatesv1.UsageDigitalSignature && u != certificatesv1.UsageKeyEncipherment {
			return fmt.Errorf("usages did not match %v", []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, purpose})
		}
	}
	if !slices.Contains(usages, purpose) {
		return fmt.Errorf("usages did not match %v", []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, purpose})
	}
	return nil
}
