package certificates

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/request"
)

// maySign refuses a sender who may not "sign" for a signer, by its name or by that of
// all of its domain: "example.com/one", or "example.com/*".
func maySign(ctx context.Context, mode authz.Mode, signer string) field.ErrorList {
	s := request.From(ctx)
	if mode == nil || s == nil || s.User == nil {
		return nil // the server itself
	}
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, _, err := mode.Authorize(ctx, &authz.Question{
			User: s.User, Verb: "sign", IsResource: true, Group: version.Group, Version: "*", Resource: "signers", Name: name,
		})
		if err == nil && d == authz.Allow {
			return nil
		}
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "signerName"), fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", s.User.GetName(), signer))}
}
