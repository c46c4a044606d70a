package oidc

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// Anonymous accepts whom the configuration lets be anonymous.
func (t *Tokens) Anonymous() authenticator.Request { return anyone{t} }

type anyone struct{ tokens *Tokens }

// AuthenticateRequest implements authenticator.Request.
func (a anyone) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if next := a.tokens.state.Load().anonymous; next != nil {
		return next.AuthenticateRequest(r)
	}
	return nil, false, nil
}
