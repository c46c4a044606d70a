package authn

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// ErrRejected is returned when credentials were presented and are not valid.
var ErrRejected = errors.New("Unauthorized") //nolint:staticcheck // the wording of the API

// A Chain asks authenticators in turn. Anonymous, if not nil, is asked last, and only
// when nobody has found something wrong.
type Chain struct {
	List      []authenticator.Request
	Anonymous authenticator.Request
	// Forget removes further headers in which credentials were; nil: there are none.
	Forget func(http.Header)
	// Guard slows down who presents wrong credentials; nil: nobody.
	Guard *Guard
}

// Authenticate returns the sender, a member of system:authenticated or of
// system:unauthenticated. The error is ErrRejected, or a *SlowDownError.
func (c *Chain) Authenticate(r *http.Request) (user.Info, error) {
	presented := c.Guard.credentials(r)
	if err := c.Guard.admit(r, presented); err != nil {
		return nil, err
	}
	var wrong []error
	for _, a := range c.List {
		resp, ok, err := a.AuthenticateRequest(r)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if ok {
			c.Guard.known(presented)
			// Nobody to whom the request is passed on needs to see them.
			r.Header.Del("Authorization")
			if c.Forget != nil {
				c.Forget(r.Header)
			}
			return withGroup(resp.User), nil
		}
	}
	if len(wrong) > 0 {
		c.Guard.failed(r)
		return nil, fmt.Errorf("%w: %w", ErrRejected, errors.Join(wrong...))
	}
	if c.Anonymous != nil {
		resp, ok, err := c.Anonymous.AuthenticateRequest(r)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRejected, err)
		}
		if ok {
			return resp.User, nil
		}
	}
	return nil, ErrRejected
}

func withGroup(u user.Info) user.Info {
	groups := u.GetGroups()
	if u.GetName() == user.Anonymous || slices.Contains(groups, user.AllAuthenticated) || slices.Contains(groups, user.AllUnauthenticated) {
		return u
	}
	return &user.DefaultInfo{Name: u.GetName(), UID: u.GetUID(), Groups: append(slices.Clip(groups), user.AllAuthenticated), Extra: u.GetExtra()}
}

// Bearer returns the request's bearer token (RFC 6750 §2.1), or "".
func Bearer(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}
