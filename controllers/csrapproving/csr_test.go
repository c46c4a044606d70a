package csrapproving_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/csrapproving"
	"github.com/periplus/periplus/controllers/csrcleaner"
	"github.com/periplus/periplus/controllers/csrsigning"
)

type asked struct {
	name, by, subject, signer string
	groups                    []string
	usage                     certificatesv1.KeyUsage
	ips                       []net.IP
}

func (a asked) object(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: a.subject, Organization: []string{"system:nodes"}}, IPAddresses: a.ips,
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, CreationTimestamp: metav1.Now()},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: a.signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, a.usage}, Username: a.by, Groups: a.groups,
		},
	}
}

// TestRequestsOfNodes takes requests through approval, signing and clean-up.
func TestRequestsOfNodes(t *testing.T) {
	ca, err := pki.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	const client, serving = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	nodes, tokens := []string{"system:nodes"}, []string{"system:bootstrappers"}
	ip := []net.IP{net.IPv4(192, 0, 2, 1)}
	requests := map[string]struct {
		asked
		issued bool
	}{
		"join":     {asked{by: "system:bootstrap:abcdef", groups: tokens, subject: "system:node:n2", signer: client, usage: "client auth"}, true},
		"stranger": {asked{by: "eve", subject: "system:node:n2", signer: client, usage: "client auth"}, false},
		"renewal":  {asked{by: "system:node:n1", groups: nodes, subject: "system:node:n1", signer: client, usage: "client auth"}, true},
		"other":    {asked{by: "system:node:n1", groups: nodes, subject: "system:node:n2", signer: client, usage: "client auth"}, false},
		"server":   {asked{by: "system:node:n1", groups: nodes, subject: "system:node:n1", signer: serving, usage: "server auth", ips: ip}, true},
		"posing":   {asked{by: "system:node:n2", groups: nodes, subject: "system:node:n2", signer: serving, usage: "server auth", ips: ip}, false},
		"wide":     {asked{by: "system:node:n1", groups: nodes, subject: "system:node:n1", signer: serving, usage: "client auth", ips: ip}, false},
	}
	synctest.Test(t, func(t *testing.T) {
		objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
		}}}
		for name, r := range requests {
			r.name = name
			objects = append(objects, r.object(t))
		}
		w := controllerstest.Start(t, []controllers.Controller{csrapproving.Controller(), csrsigning.Controller(), csrcleaner.Controller()}, func(e *controllers.Env) {
			e.Options.SigningCert, e.Options.SigningKey = ca.PEM, ca.KeyPEM()
			e.Options.CertificateLife = 30 * time.Hour
		}, objects...)
		w.Client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
			group := map[string]string{"nodeclient": "system:bootstrappers", "selfnodeclient": "system:nodes"}[review.Spec.ResourceAttributes.Subresource]
			review.Status.Allowed = len(review.Spec.Groups) == 1 && review.Spec.Groups[0] == group
			return true, review, nil
		})
		<-time.After(time.Second) // back-offs of those that were asked before the reactor was there
		synctest.Wait()
		for name, want := range requests {
			got, err := w.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(got.Status.Certificate)
			if (block != nil) != want.issued {
				t.Errorf("%s: issued %v, want %v: %+v", name, block != nil, want.issued, got.Status.Conditions)
			}
			if block == nil {
				continue
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil || cert.CheckSignatureFrom(ca.Cert) != nil || cert.Subject.CommonName != want.subject || cert.IsCA {
				t.Errorf("%s: certificate %+v, %v", name, cert.Subject, err)
			}
			if left := time.Until(cert.NotAfter); left > 30*time.Hour || left < 29*time.Hour {
				t.Errorf("%s: valid for %s, want 30 hours", name, left)
			}
		}
		<-time.After(25 * time.Hour)
		synctest.Wait()
		if _, err := w.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), "join", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("an old request is kept: %v", err)
		}
	})
}
