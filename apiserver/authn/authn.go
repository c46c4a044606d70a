package authn

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

// ErrRejected is returned when credentials were presented and are not valid.
var ErrRejected = errors.New("Unauthorized") //nolint:staticcheck // the wording of the API

// An Authenticator recognises one kind of credentials. ok is false when the
// request has none of that kind; an error means that they are not valid.
type Authenticator interface {
	Authenticate(r *http.Request) (u user.Info, ok bool, err error)
}

// A Chain asks authenticators in turn; who presents nothing is anonymous.
type Chain []Authenticator

// Authenticate returns the sender, a member of system:authenticated or of
// system:unauthenticated. Invalid credentials are an error even when others are valid.
func (c Chain) Authenticate(r *http.Request) (user.Info, error) {
	for _, a := range c {
		u, ok, err := a.Authenticate(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return withGroup(u), nil
		}
	}
	if r.Header.Get("Authorization") != "" {
		return nil, ErrRejected
	}
	return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, nil
}

func withGroup(u user.Info) user.Info {
	if slices.Contains(u.GetGroups(), user.AllAuthenticated) {
		return u
	}
	groups := append(append([]string(nil), u.GetGroups()...), user.AllAuthenticated)
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: groups, Extra: u.GetExtra()}
}

// Certificate accepts client certificates that the TLS layer has verified: the
// common name is the user, the organizations are the groups.
type Certificate struct{}

// Authenticate implements Authenticator.
func (Certificate) Authenticate(r *http.Request) (user.Info, bool, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil, false, nil
	}
	subject := r.TLS.PeerCertificates[0].Subject
	if subject.CommonName == "" {
		return nil, false, nil
	}
	return &user.DefaultInfo{Name: subject.CommonName, Groups: subject.Organization}, true, nil
}

// bearer returns the request's bearer token (RFC 6750 §2.1, and the WebSocket
// sub-protocol that browsers must use).
func bearer(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}
