package resource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(env registry.Env) []*registry.Resource {
	return []*registry.Resource{
		deviceClasses(),
		deviceTaintRules(),
		resourceClaims(env),
		resourceClaimTemplates(env.Objects),
		resourceSlices(),
	}
}

// version is the group and version in which the kinds are stored.
var version = resourcev1.SchemeGroupVersion
