package node

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		runtimeClasses(),
	}
}

// version is the group and version in which the kinds are stored.
var version = nodev1.SchemeGroupVersion
