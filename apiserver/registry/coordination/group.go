package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		leases(),
		leaseCandidates(),
	}
}

// version is the group and version in which the kinds are stored.
var version = coordinationv1.SchemeGroupVersion
