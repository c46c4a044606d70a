package authentication

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		tokenReviews(),
		selfSubjectReviews(),
	}
}

// version is the group and version in which the kinds are stored.
var version = authenticationv1.SchemeGroupVersion
