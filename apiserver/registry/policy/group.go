package policy

import (
	policyv1 "k8s.io/api/policy/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		podDisruptionBudgets(),
	}
}

// version is the group and version in which the kinds are stored.
var version = policyv1.SchemeGroupVersion
