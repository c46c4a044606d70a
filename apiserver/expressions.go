package apiserver

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/apiserver/authz"
)

// expressions lets rules in CEL ask what somebody may do.
type expressions struct{ server *Server }

var _ authorizer.UnconditionalAuthorizer = expressions{}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (e expressions) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	switch d, reason, err := e.server.authz.Authorize(ctx, authz.FromAttributes(a)); d {
	case authz.Allow:
		return authorizer.DecisionAllow, reason, err
	case authz.Deny:
		return authorizer.DecisionDeny, reason, err
	default:
		return authorizer.DecisionNoOpinion, reason, err
	}
}
