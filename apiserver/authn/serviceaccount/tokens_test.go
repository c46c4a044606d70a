package serviceaccount_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
)

// objects is a reader of a few objects.
type objects map[string]runtime.Object

func (o objects) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	if obj := o[gvr.Resource+"/"+namespace+"/"+name]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func (o objects) List(schema.GroupVersionResource, string) ([]runtime.Object, error) { return nil, nil }

func meta(name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(uid)}
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const issuer = "https://issuer.example"

// fixture is a cluster with one of everything.
type fixture struct {
	objects objects
	account *corev1.ServiceAccount
	now     time.Time
	tokens  *serviceaccount.Tokens
	used    []string
}

func newFixture(t testing.TB, signer crypto.Signer, set func(*serviceaccount.Config)) *fixture {
	t.Helper()
	f := &fixture{account: &corev1.ServiceAccount{ObjectMeta: meta("a", "sa-1")}, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-1"}}
	f.objects = objects{
		"serviceaccounts/ns/a": f.account, "pods/ns/p": &corev1.Pod{ObjectMeta: meta("p", "p-1")},
		"secrets/ns/s": &corev1.Secret{ObjectMeta: meta("s", "s-1")}, "nodes//n": node,
	}
	c := serviceaccount.Config{Issuers: []string{issuer}, Audiences: []string{"api"}, Signer: signer, Objects: f.objects, Now: func() time.Time { return f.now },
		Used: func(_ context.Context, s *corev1.Secret, day string) { f.used = append(f.used, s.Name+" "+day) }}
	set(&c)
	var err error
	if f.tokens, err = serviceaccount.New(c); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) ask(token string, audiences ...string) (*authenticator.Response, bool, error) {
	ctx := context.Background()
	if len(audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, audiences)
	}
	return f.tokens.AuthenticateToken(ctx, token)
}

// TestTokens is a table of what tokens are bound to, what happens then, and who asks.
func TestTokens(t *testing.T) {
	t.Parallel()
	pod, node, secret := &serviceaccount.Ref{Name: "p", UID: "p-1"}, &serviceaccount.Ref{Name: "n", UID: "n-1"}, &serviceaccount.Ref{Name: "s", UID: "s-1"}
	gone := func(key string) func(*fixture) { return func(f *fixture) { delete(f.objects, key) } }
	for name, c := range map[string]struct {
		bound     serviceaccount.Bound
		happens   func(*fixture)
		audiences []string
		wrong     string // in the error; "": it is accepted
	}{
		"plain":                    {},
		"bound to a pod":           {bound: serviceaccount.Bound{Pod: pod, Node: node}},
		"bound to a node":          {bound: serviceaccount.Bound{Node: node}},
		"bound to a secret":        {bound: serviceaccount.Bound{Secret: secret}},
		"its audience":             {bound: serviceaccount.Bound{Audiences: []string{"vault"}}, audiences: []string{"vault", "x"}},
		"another audience":         {bound: serviceaccount.Bound{Audiences: []string{"vault"}}, wrong: `token audiences ["vault"] is invalid for the target audiences ["api"]`},
		"audience of a review":     {audiences: []string{"vault"}, wrong: `token audiences ["api"] is invalid for the target audiences ["vault"]`},
		"expired":                  {happens: func(f *fixture) { f.now = f.now.Add(time.Hour) }, wrong: "service account token has expired"},
		"a moment before":          {happens: func(f *fixture) { f.now = f.now.Add(time.Hour - time.Second) }},
		"not yet":                  {happens: func(f *fixture) { f.now = f.now.Add(-2 * time.Minute) }, wrong: "service account token is not valid yet"},
		"account gone":             {happens: gone("serviceaccounts/ns/a"), wrong: `serviceaccounts "a" not found`},
		"account made anew":        {happens: func(f *fixture) { f.account.UID = "sa-2" }, wrong: "UID (sa-1) does not match"},
		"pod gone":                 {bound: serviceaccount.Bound{Pod: pod, Node: node}, happens: gone("pods/ns/p"), wrong: `pods "p" not found`},
		"pod stays, node goes":     {bound: serviceaccount.Bound{Pod: pod, Node: node}, happens: gone("nodes//n")},
		"node gone":                {bound: serviceaccount.Bound{Node: node}, happens: gone("nodes//n"), wrong: `nodes "n" not found`},
		"secret gone":              {bound: serviceaccount.Bound{Secret: secret}, happens: gone("secrets/ns/s"), wrong: "service account token has been invalidated"},
		"account is being deleted": {happens: func(f *fixture) { f.account.DeletionTimestamp = &metav1.Time{Time: f.now.Add(-30 * time.Second)} }},
		"account has been deleted": {happens: func(f *fixture) { f.account.DeletionTimestamp = &metav1.Time{Time: f.now.Add(-2 * time.Minute)} }, wrong: "service account has been deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, ecKey(t), func(*serviceaccount.Config) {})
			c.bound.ServiceAccount, c.bound.Lifetime = f.account, time.Hour
			token, expires, err := f.tokens.Issue(c.bound)
			if err != nil || !expires.Equal(f.now.Add(time.Hour)) {
				t.Fatalf("issue: %v, %v", expires, err)
			}
			for _, when := range []string{"the first time", "again"} {
				if c.happens != nil && (when == "again" || c.wrong != "") {
					c.happens(f)
				}
				resp, ok, err := f.ask(token, c.audiences...)
				if c.wrong != "" {
					if ok || err == nil || !strings.Contains(err.Error(), c.wrong) {
						t.Errorf("%s: %v, %v, want %q", when, ok, err, c.wrong)
					}
					return
				}
				if err != nil || !ok || resp.User.GetName() != "system:serviceaccount:ns:a" || resp.User.GetUID() != "sa-1" ||
					!slices.Contains(resp.User.GetGroups(), "system:serviceaccounts:ns") {
					t.Errorf("%s: %+v, %v, %v", when, resp, ok, err)
				}
				if c.bound.Pod != nil && (resp.User.GetExtra()["authentication.kubernetes.io/pod-name"][0] != "p" || resp.User.GetExtra()["authentication.kubernetes.io/node-name"][0] != "n") {
					t.Errorf("extra: %v", resp.User.GetExtra())
				}
				if len(resp.User.GetExtra()["authentication.kubernetes.io/credential-id"]) == 0 {
					t.Error("the token's ID is not told")
				}
			}
		})
	}
}

// TestRotation: tokens of an older key and of an older issuer are accepted, those of strangers are not.
func TestRotation(t *testing.T) {
	t.Parallel()
	old, next := ecKey(t), ecKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&old.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})...)
	keys, err := serviceaccount.ParseKeys(text)
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	issue := func(signer crypto.Signer, by string) string {
		f := newFixture(t, signer, func(c *serviceaccount.Config) { c.Issuers = []string{by} })
		token, _, err := f.tokens.Issue(serviceaccount.Bound{ServiceAccount: f.account, Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	f := newFixture(t, next, func(c *serviceaccount.Config) { c.Issuers, c.Keys = []string{"https://new.example", issuer}, keys })
	for name, token := range map[string]string{"new": issue(next, "https://new.example"), "old": issue(old, issuer), "rsa": issue(rsaKey, issuer)} {
		if _, ok, err := f.ask(token); !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if _, ok, err := f.ask(issue(ecKey(t), issuer)); ok || err == nil {
		t.Errorf("a stranger's key: %v, %v", ok, err)
	}
	if _, ok, err := f.ask(issue(next, "https://other.example")); ok || err != nil {
		t.Errorf("another issuer: %v, %v: want that others are asked", ok, err)
	}
	if got := f.tokens.Keys().Algorithms(); !slices.Equal(got, []string{"ES256", "RS256"}) || len(f.tokens.Keys().JWKS()) != 3 {
		t.Errorf("%v, %d keys", got, len(f.tokens.Keys().JWKS()))
	}
}

// TestExtended: what pods get by default lives for a year, and is to be replaced after an hour.
func TestExtended(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ecKey(t), func(c *serviceaccount.Config) { c.Extend = true })
	token, replace, err := f.tokens.Issue(serviceaccount.Bound{ServiceAccount: f.account, Lifetime: 3607 * time.Second, Pod: &serviceaccount.Ref{Name: "p", UID: "p-1"}})
	if err != nil || !replace.Equal(f.now.Add(3607*time.Second)) {
		t.Fatalf("%v, %v", replace, err)
	}
	f.now = f.now.Add(364 * 24 * time.Hour)
	if _, ok, err := f.ask(token); !ok || err != nil {
		t.Errorf("after 364 days: %v, %v", ok, err)
	}
	f.now = f.now.Add(2 * 24 * time.Hour)
	if _, ok, _ := f.ask(token); ok {
		t.Error("accepted after 366 days")
	}
}

func TestLegacy(t *testing.T) {
	t.Parallel()
	key := ecKey(t)
	f := newFixture(t, key, func(*serviceaccount.Config) {})
	token, err := serviceaccount.IssueLegacy(key, f.account, "s")
	if err != nil {
		t.Fatal(err)
	}
	s := f.objects["secrets/ns/s"].(*corev1.Secret)
	if _, ok, err := f.ask(token); ok || err == nil || err.Error() != "token does not match server's copy" {
		t.Errorf("not in its secret: %v, %v", ok, err)
	}
	s.Data = map[string][]byte{"token": []byte(token)}
	resp, ok, err := f.ask(token)
	if !ok || err != nil || resp.User.GetName() != "system:serviceaccount:ns:a" || !slices.Equal(f.used, []string{"s 2026-05-01"}) {
		t.Errorf("%v, %v, used %v", ok, err, f.used)
	}
	if _, ok, _ := f.ask(token, "vault"); ok {
		t.Error("accepted for another audience")
	}
	s.Labels = map[string]string{serviceaccount.InvalidSince: "2026-04-01"}
	if _, ok, err := f.ask(token); ok || err == nil || !strings.Contains(err.Error(), "has been marked invalid") {
		t.Errorf("marked invalid: %v, %v", ok, err)
	}
	delete(f.objects, "secrets/ns/s")
	if _, ok, err := f.ask(token); ok || err == nil || err.Error() != "token has been invalidated" {
		t.Errorf("secret gone: %v, %v", ok, err)
	}
}

// FuzzToken: whatever is presented, nobody but the owner of a token that was issued is accepted.
func FuzzToken(f *testing.F) {
	fix := newFixture(f, ecKey(f), func(*serviceaccount.Config) {})
	good, _, err := fix.tokens.Issue(serviceaccount.Bound{ServiceAccount: fix.account, Lifetime: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	head, rest, _ := strings.Cut(good, ".")
	body, _, _ := strings.Cut(rest, ".")
	f.Add(good)
	f.Add(head + "." + body + ".")
	f.Add("eyJhbGciOiJub25lIn0." + body + ".")
	f.Add("eyJhbGciOiJIUzI1NiJ9." + body + ".AAAA")
	f.Add("")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		resp, ok, _ := fix.ask(token)
		if !ok {
			return
		}
		// A signature has more than one form in base64; the claims are what counts.
		if got, _, _ := strings.Cut(strings.TrimPrefix(token, head+"."), "."); !strings.HasPrefix(token, head+".") || got != body || resp.User.GetName() != "system:serviceaccount:ns:a" {
			t.Errorf("accepted: %q", token)
		}
	})
}
