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
	q := &authz.Question{User: a.GetUser(), Verb: a.GetVerb(), IsResource: a.IsResourceRequest(), Path: a.GetPath()}
	if q.IsResource {
		q.Group, q.Version, q.Resource, q.Subresource = a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource()
		q.Namespace, q.Name = a.GetNamespace(), a.GetName()
	}
	switch d, reason := e.server.authz.Authorize(ctx, q); d {
	case authz.Allow:
		return authorizer.DecisionAllow, reason, nil
	case authz.Deny:
		return authorizer.DecisionDeny, reason, nil
	default:
		return authorizer.DecisionNoOpinion, reason, nil
	}
}
