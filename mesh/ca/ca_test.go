package ca_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	pb "istio.io/api/security/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/ca"
)

var shop = mesh.Identity{TrustDomain: "cluster.local", Namespace: "shop", ServiceAccount: "web"}

// csr asks for somebody else's identity.
func csr(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "root"}, URIs: []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/kube-system/sa/admin"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func leaf(t *testing.T, chain []string) *x509.Certificate {
	t.Helper()
	b, _ := pem.Decode([]byte(chain[0]))
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSign(t *testing.T) {
	t.Parallel()
	a, err := ca.New()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.Sign(csr(t, ecKey(t)), shop, 1000*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := leaf(t, chain)
	if len(c.URIs) != 1 || c.URIs[0].String() != "spiffe://cluster.local/ns/shop/sa/web" || c.Subject.CommonName != "" {
		t.Errorf("the identity is the request's: %v %v", c.URIs, c.Subject)
	}
	if life := time.Until(c.NotAfter); life > 24*time.Hour || life < 23*time.Hour {
		t.Errorf("it is valid for %v", life)
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // on purpose
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string][]byte{"weak key": csr(t, weak), "no PEM": []byte("x"), "no request": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})} {
		if _, err := a.Sign(request, shop, 0); !errors.Is(err, ca.ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The second server takes the authority that the first has made.
func TestOpen(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset()
	first, err := ca.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ca.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if string(first.Root()) != string(second.Root()) {
		t.Error("there are two authorities")
	}
	chain, err := second.Sign(csr(t, ecKey(t)), shop, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf(t, chain).Verify(x509.VerifyOptions{Roots: first.Pool()}); err != nil {
		t.Error(err)
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset()
	c.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		if len(r.Spec.Audiences) != 1 || r.Spec.Audiences[0] != mesh.Audience {
			t.Errorf("audiences %v", r.Spec.Audiences)
		}
		switch r.Spec.Token {
		case "good":
			r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:web"}}
		case "user":
			r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "alice"}}
		}
		return true, r, nil
	})
	a, err := ca.New()
	if err != nil {
		t.Fatal(err)
	}
	s := ca.NewService(a, ca.NewTokenAuthenticator(c), slog.New(slog.DiscardHandler))
	call := func(header string, request []byte) (*pb.IstioCertificateResponse, error) {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", header))
		return s.CreateCertificate(ctx, &pb.IstioCertificateRequest{Csr: string(request)})
	}
	r, err := call("Bearer good", csr(t, ecKey(t)))
	if err != nil {
		t.Fatal(err)
	}
	if got := leaf(t, r.GetCertChain()).URIs[0].String(); got != shop.String() || len(r.GetCertChain()) != 2 {
		t.Errorf("%s, %d certificates", got, len(r.GetCertChain()))
	}
	for header, want := range map[string]codes.Code{"Bearer bad": codes.Unauthenticated, "Bearer user": codes.Unauthenticated, "Basic good": codes.Unauthenticated} {
		if _, err := call(header, csr(t, ecKey(t))); status.Code(err) != want {
			t.Errorf("%s: %v, want %v", header, err, want)
		}
	}
	if _, err := call("Bearer good", []byte("x")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no request: %v", err)
	}
}
