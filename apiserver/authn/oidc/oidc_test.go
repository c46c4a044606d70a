package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/periplus/periplus/apiserver/authn/oidc"
	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
)

// issuer is an OpenID Connect issuer on loopback.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
	ca  string
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := serviceaccount.KeyOf(crypto.PublicKey(&key.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": serviceaccount.Keys{public}.JWKS()})
	})
	i.Server = httptest.NewUnstartedServer(mux)
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.StartTLS()
	t.Cleanup(i.Close)
	i.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
	return i
}

func (i *issuer) token(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	all := jwt.MapClaims{"iss": i.URL, "aud": "periplus", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "sub": "42"}
	maps.Copy(all, claims)
	token := jwt.NewWithClaims(jwt.SigningMethodES256, all)
	signed, err := token.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// section is one issuer in a configuration.
func (i *issuer) section(rules string) string {
	return fmt.Sprintf("- issuer:\n    url: %s\n    audiences: [periplus]\n    certificateAuthority: |\n      %s\n%s", i.URL, strings.ReplaceAll(strings.TrimSpace(i.ca), "\n", "\n      "), rules)
}

const rules = `  claimValidationRules:
  - expression: 'claims.email_verified == true'
    message: the address must be verified
  claimMappings:
    username: {expression: 'claims.email'}
    groups: {expression: 'dyn(claims.teams).map(t, "login:" + t)'}
    uid: {expression: 'claims.sub'}
    extra:
    - key: example.com/tenant
      valueExpression: claims.tenant
  userValidationRules:
  - expression: "!user.username.startsWith('system:')"
    message: names of the system are not for people
`

func config(t *testing.T, path string, sections ...string) {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n" + strings.Join(sections, "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *oidc.Tokens {
	t.Helper()
	tokens, err := oidc.New(oidc.Config{File: path, Reserved: []string{"https://cluster.example"}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	return tokens
}

// known waits until the keys of a token's issuer have been fetched.
func known(t *testing.T, tokens *oidc.Tokens, token string) (name string, groups []string, err error) {
	t.Helper()
	for {
		resp, ok, err := tokens.AuthenticateToken(t.Context(), token)
		if err != nil && strings.Contains(err.Error(), "not initialized") && t.Context().Err() == nil {
			continue
		}
		if !ok {
			return "", nil, err
		}
		return resp.User.GetName(), resp.User.GetGroups(), err
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	first, second := startIssuer(t), startIssuer(t)
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	config(t, path, first.section(rules), second.section("  claimMappings:\n    username: {claim: sub, prefix: 'second:'}\n"))
	tokens := open(t, path)
	good := jwt.MapClaims{"email": "ann@example.com", "email_verified": true, "teams": []string{"a", "b"}, "tenant": "north"}
	with := func(key string, value any) jwt.MapClaims {
		out := jwt.MapClaims{}
		maps.Copy(out, good)
		out[key] = value
		return out
	}
	for name, c := range map[string]struct {
		token, user, wrong string
		groups             []string
	}{
		"mapped":            {token: first.token(t, good), user: "ann@example.com", groups: []string{"login:a", "login:b"}},
		"another issuer":    {token: second.token(t, nil), user: "second:42"},
		"claim rule":        {token: first.token(t, with("email_verified", false)), wrong: "the address must be verified"},
		"user rule":         {token: first.token(t, with("email", "system:admin")), wrong: "names of the system are not for people"},
		"expired":           {token: first.token(t, with("exp", time.Now().Add(-time.Hour).Unix())), wrong: "expired"},
		"another audience":  {token: first.token(t, with("aud", "somebody")), wrong: "audience"},
		"somebody's key":    {token: (&issuer{Server: first.Server, key: second.key}).token(t, good), wrong: "signature"},
		"an unknown issuer": {token: first.token(t, with("iss", "https://elsewhere.example"))},
	} {
		user, groups, err := known(t, tokens, c.token)
		if user != c.user || !slices.Equal(groups, c.groups) || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q %v, %v", name, user, groups, err)
		}
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	mapping := "  claimMappings:\n    username: {claim: sub, prefix: '%s'}\n"
	config(t, path, i.section(fmt.Sprintf(mapping, "one:")))
	tokens := open(t, path)
	token := i.token(t, nil)
	if user, _, err := known(t, tokens, token); user != "one:42" {
		t.Fatalf("%q, %v", user, err)
	}
	config(t, path, i.section(fmt.Sprintf(mapping, "two:")))
	if err := tokens.Load(); err != nil {
		t.Fatal(err)
	}
	if user, _, err := known(t, tokens, token); user != "two:42" {
		t.Errorf("after the change: %q, %v", user, err)
	}
	for wrong, text := range map[string]string{
		"Required":         i.section("  claimMappings:\n    username: {}\n"),
		"claimMappings":    i.section("  claimMappings:\n    username: {expression: 'claims.'}\n"),
		"unknown field":    i.section("  claimMapping: {}\n"),
		"must not overlap": strings.Replace(i.section(fmt.Sprintf(mapping, "x:")), i.URL, "https://cluster.example", 1),
	} {
		config(t, path, text)
		if err := tokens.Load(); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("want an error about %q: %v", wrong, err)
		}
	}
	if user, _, err := known(t, tokens, token); user != "two:42" {
		t.Errorf("after bad files: %q, %v", user, err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte(i.ca), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := oidc.New(oidc.Config{Log: slog.New(slog.DiscardHandler), Flags: oidc.Flags{
		IssuerURL: i.URL, ClientID: "periplus", CAFile: ca, UsernameClaim: "email", GroupsClaim: "teams", GroupsPrefix: "g:",
		RequiredClaims: map[string]string{"hd": "example.com"}, SigningAlgorithms: []string{"ES256"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	claims := jwt.MapClaims{"email": "ann@example.com", "teams": []string{"a"}, "hd": "example.com"}
	if user, groups, err := known(t, tokens, i.token(t, claims)); user != "ann@example.com" || !slices.Equal(groups, []string{"g:a"}) {
		t.Errorf("%q %v, %v", user, groups, err)
	}
	delete(claims, "hd")
	if user, _, err := known(t, tokens, i.token(t, claims)); user != "" || err == nil {
		t.Errorf("without a required claim: %q, %v", user, err)
	}
	if _, err := (&oidc.Flags{IssuerURL: i.URL}).Configuration(); err == nil {
		t.Error("an issuer without a client is accepted")
	}
}

// FuzzParse: no file, however broken, does more than give an error.
func FuzzParse(f *testing.F) {
	f.Add("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n")
	f.Add("{")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = oidc.Parse([]byte(text)) })
}
