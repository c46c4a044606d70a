package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/periplus/periplus/apiserver/authn/certificate"
	"github.com/periplus/periplus/base/pki"
)

func authority(t testing.TB, name string) *pki.Authority {
	t.Helper()
	a, err := pki.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func leaf(t testing.TB, a *pki.Authority, r pki.Request) *x509.Certificate {
	t.Helper()
	text, _, err := a.Pair(r)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func with(certs ...*x509.Certificate) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: certs}
	return r
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	ours, others := authority(t, "ours"), authority(t, "others")
	a := certificate.New(ours.Pool())
	ann := leaf(t, ours, pki.Request{CommonName: "ann", Organizations: []string{"team"}, Client: true})
	for range 2 { // found out, and remembered
		resp, ok, err := a.AuthenticateRequest(with(ann))
		if err != nil || !ok || resp.User.GetName() != "ann" || !slices.Equal(resp.User.GetGroups(), []string{"team"}) {
			t.Fatalf("%+v, %v, %v", resp, ok, err)
		}
	}
	for name, c := range map[string]*x509.Certificate{
		"another authority": leaf(t, others, pki.Request{CommonName: "ann", Client: true}),
		"of a server":       leaf(t, ours, pki.Request{CommonName: "ann", Server: true}),
	} {
		if resp, ok, err := a.AuthenticateRequest(with(c)); ok || err == nil {
			t.Errorf("%s: %+v, %v", name, resp, err)
		}
	}
	if _, ok, err := a.AuthenticateRequest(with()); ok || err != nil {
		t.Errorf("without a certificate: %v, %v", ok, err)
	}
	// The authorities are replaced: what was remembered counts no more.
	a.Trust(others.Pool())
	if _, ok, err := a.AuthenticateRequest(with(ann)); ok || err == nil {
		t.Errorf("after the authority has gone: %v, %v", ok, err)
	}
}

// FuzzCertificate: a certificate that was changed in any way is nobody's.
func FuzzCertificate(f *testing.F) {
	ours := authority(f, "ours")
	a := certificate.New(ours.Pool())
	good := leaf(f, ours, pki.Request{CommonName: "ann", Client: true})
	f.Add(good.Raw)
	f.Add(good.RawTBSCertificate)
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if resp, ok, _ := a.AuthenticateRequest(with(c)); ok && (resp.User.GetName() != "ann" || !slices.Equal(c.RawTBSCertificate, good.RawTBSCertificate)) {
			t.Errorf("accepted as %q: %x", resp.User.GetName(), der)
		}
	})
}
