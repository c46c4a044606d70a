package authn_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authn"
)

// way says what one way of authentication finds out of a bearer token.
type way map[string]string

func (w way) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	switch name := w[authn.Bearer(r)]; name {
	case "":
		return nil, false, nil
	case "wrong":
		return nil, false, errors.New("wrong")
	default:
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
	}
}

func from(address, token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address + ":1"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestChain(t *testing.T) {
	t.Parallel()
	c := &authn.Chain{List: []authenticator.Request{way{"a": "ann", "x": "wrong", "y": "wrong"}, way{"b": "bob", "x": "carl"}}, Anonymous: way{"": user.Anonymous}}
	for token, want := range map[string]string{"a": "ann", "b": "bob", "x": "carl", "y": "", "": user.Anonymous} {
		u, err := c.Authenticate(from("192.0.2.1", token))
		if want == "" {
			if !errors.Is(err, authn.ErrRejected) {
				t.Errorf("%q: %v, %v", token, u, err)
			}
			continue
		}
		if err != nil || u.GetName() != want || slices.Contains(u.GetGroups(), user.AllAuthenticated) != (want != user.Anonymous) {
			t.Errorf("%q: %v, %v", token, u, err)
		}
	}
}

// TestGuard: who guesses is slowed down, and nobody else is.
func TestGuard(t *testing.T) {
	t.Parallel()
	c := &authn.Chain{List: []authenticator.Request{way{"good": "ann", "late": "ann", "bad": "wrong"}}, Guard: authn.NewGuard()}
	if _, err := c.Authenticate(from("192.0.2.1", "good")); err != nil {
		t.Fatal(err)
	}
	var slow *authn.SlowDownError
	tries := 0
	for ; tries < 10000; tries++ {
		if _, err := c.Authenticate(from("192.0.2.1", "bad")); errors.As(err, &slow) {
			break
		}
	}
	if slow == nil || tries < 100 {
		t.Fatalf("slowed down after %d guesses: %v", tries, slow)
	}
	for name, r := range map[string]*http.Request{"the token that was right": from("192.0.2.1", "good"), "another address": from("192.0.2.2", "late")} {
		if u, err := c.Authenticate(r); err != nil || u.GetName() != "ann" {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
}

// TestForgotten: credentials go no further than authentication.
func TestForgotten(t *testing.T) {
	t.Parallel()
	c := &authn.Chain{List: []authenticator.Request{way{"a": "ann"}}, Forget: func(h http.Header) { h.Del("X-Remote-User") }}
	r := from("192.0.2.1", "a")
	r.Header.Set("X-Remote-User", "bob")
	if _, err := c.Authenticate(r); err != nil || len(r.Header) != 0 {
		t.Errorf("%v, %v", r.Header, err)
	}
}
