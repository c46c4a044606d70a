package bootstrap_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/periplus/periplus/base/jointoken"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/kubelet/bootstrap"
)

// TestDiscover trusts a server by the token's hash or its signature, and tells it
// nothing before.
func TestDiscover(t *testing.T) {
	t.Parallel()
	ca, err := pki.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	info := clientcmdapi.NewConfig()
	info.Clusters[""] = &clientcmdapi.Cluster{Server: "https://192.0.2.1:6443", CertificateAuthorityData: ca.PEM}
	content, err := clientcmd.Write(*info)
	if err != nil {
		t.Fatal(err)
	}
	token := jointoken.Token{ID: "abcdef", Secret: "0123456789abcdef"}
	m := corev1.ConfigMap{Data: map[string]string{"kubeconfig": string(content), "jws-kubeconfig-abcdef": jointoken.Sign(string(content), token)}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/kube-public/configmaps/cluster-info" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %v", r.URL.Path, r.Header)
		}
		_ = json.NewEncoder(w).Encode(m)
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token     jointoken.Token
		untrusted bool
		want      string // in the error
	}{
		"hash":           {jointoken.Token{ID: "zzzzzz", Secret: token.Secret, CAHash: jointoken.HashOf(ca.Cert)}, false, ""},
		"signature":      {token, false, ""},
		"another's hash": {jointoken.Token{ID: token.ID, Secret: token.Secret, CAHash: jointoken.HashOf(other.Cert)}, true, "Nothing was sent"},
		"another secret": {jointoken.Token{ID: token.ID, Secret: "ffffffffffffffff"}, true, "another secret"},
	} {
		got, err := bootstrap.Discover(t.Context(), address, c.token)
		if c.want == "" && (err != nil || string(got) != string(ca.PEM)) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, bootstrap.ErrUntrusted) != c.untrusted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseServer(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://192.0.2.1":      "https://192.0.2.1:6443",
		"https://a.example:443/": "https://a.example:443",
		"https://[2001:db8::1]":  "https://[2001:db8::1]:6443",
		"http://192.0.2.1:6443":  "",
		"192.0.2.1:6443":         "",
		"https://a/b":            "",
	} {
		u, err := bootstrap.ParseServer(in)
		if want == "" && err == nil || want != "" && (err != nil || u.String() != want) {
			t.Errorf("%s: %v, %v", in, u, err)
		}
	}
}
