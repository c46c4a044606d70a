package bootstrap

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base/pki"
)

// A Pair is a certificate with its key, both in PEM.
type Pair struct{ Cert, Key []byte }

func (p Pair) parse() (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	return &c, err
}

// A wanted certificate.
type wanted struct {
	signer string
	usage  certificatesv1.KeyUsage
	node   string
	names  []string
	ips    []net.IP
	life   time.Duration
}

func clientOf(node string, life time.Duration) wanted {
	return wanted{signer: certificatesv1.KubeAPIServerClientKubeletSignerName, usage: certificatesv1.UsageClientAuth, node: node, life: life}
}

// obtain asks for a certificate and waits until it is issued or refused.
func obtain(ctx context.Context, c kubernetes.Interface, w wanted) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := pki.KeyPEM(key)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "system:node:" + w.node, Organization: []string{"system:nodes"}},
		DNSNames: w.names, IPAddresses: w.ips,
	}, key)
	if err != nil {
		return Pair{}, err
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: w.signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, w.usage},
		},
	}
	if w.life > 0 {
		seconds := int32(w.life / time.Second)
		request.Spec.ExpirationSeconds = &seconds
	}
	requests := c.CertificatesV1().CertificateSigningRequests()
	created, err := requests.Create(ctx, request, metav1.CreateOptions{})
	if err != nil {
		return Pair{}, fmt.Errorf("ask for a certificate: %w", err)
	}
	for {
		cert, revision, err := issued(created)
		if err != nil {
			return Pair{}, err
		}
		if cert != nil {
			return Pair{cert, keyPEM}, nil
		}
		if created, err = next(ctx, c, created.Name, revision); err != nil {
			return Pair{}, fmt.Errorf("wait for certificate %s: %w", request.Name, err)
		}
	}
}

// issued returns the certificate of a request, if it has one, or why it never will.
func issued(r *certificatesv1.CertificateSigningRequest) (cert []byte, revision string, err error) {
	for _, x := range r.Status.Conditions {
		switch x.Type {
		case certificatesv1.CertificateDenied:
			return nil, "", fmt.Errorf("certificate request %s was denied: %s: %s", r.Name, x.Reason, x.Message)
		case certificatesv1.CertificateFailed:
			return nil, "", fmt.Errorf("certificate request %s failed: %s: %s", r.Name, x.Reason, x.Message)
		}
	}
	if len(r.Status.Certificate) > 0 {
		return r.Status.Certificate, "", nil
	}
	return nil, r.ResourceVersion, nil
}

// next returns a newer version of a request than the one of revision.
func next(ctx context.Context, c kubernetes.Interface, name, revision string) (*certificatesv1.CertificateSigningRequest, error) {
	requests := c.CertificatesV1().CertificateSigningRequests()
	for {
		w, err := requests.Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(), ResourceVersion: revision,
		})
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return requests.Get(ctx, name, metav1.GetOptions{})
		case err != nil:
			return nil, err
		}
		for e := range w.ResultChan() {
			if r, ok := e.Object.(*certificatesv1.CertificateSigningRequest); ok {
				w.Stop()
				if e.Type == "DELETED" {
					return nil, errors.New("somebody deleted it")
				}
				return r, nil
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// The watch ended without news: the connection broke, or its time was up.
		if r, err := requests.Get(ctx, name, metav1.GetOptions{}); err != nil || r.ResourceVersion != revision {
			return r, err
		}
	}
}
