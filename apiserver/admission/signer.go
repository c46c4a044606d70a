package admission

import (
	"context"
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
