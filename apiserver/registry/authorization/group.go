package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		subjectAccessReviews(),
		selfSubjectAccessReviews(),
		selfSubjectRulesReviews(),
		localSubjectAccessReviews(),
	}
}

// version is the group and version in which the kinds are stored.
var version = authorizationv1.SchemeGroupVersion
