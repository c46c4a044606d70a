package admission

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// MayFor reports whether the sender of a write may use a verb (approve, sign, attest)
// on a signer of certificates, by its name or by that of all of its domain:
// "example.com/one", or "example.com/*".
func (a *Attributes) MayFor(ctx context.Context, verb, signer string) bool {
	if a.Authorizer == nil || a.User == nil {
		return false
	}
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, _, err := a.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: a.User, Verb: verb, Name: name, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if err == nil && d == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}

// A SignerRule is a plug-in by which some writes need a verb on a signer.
type SignerRule struct {
	Plugin string
	Verb   string
	// Refused is the message, with the verb %q for the signer's name.
	Refused string
	// Signer returns the signer that a write is for, and whether it needs the verb.
	Signer func(a *Attributes) (signer string, needed bool)
}

var _ Validator = (*SignerRule)(nil)

// Name implements Plugin.
func (r *SignerRule) Name() string { return r.Plugin }

// Validate implements Validator.
func (r *SignerRule) Validate(ctx context.Context, a *Attributes) error {
	signer, needed := r.Signer(a)
	if !needed || a.MayFor(ctx, r.Verb, signer) {
		return nil
	}
	return fmt.Errorf(r.Refused, signer)
}
