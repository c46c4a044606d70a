package discovery

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		endpointSlices(),
	}
}

// version is the group and version in which the kinds are stored.
var version = discoveryv1.SchemeGroupVersion
