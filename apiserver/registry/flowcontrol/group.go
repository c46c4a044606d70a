package flowcontrol

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		flowSchemas(),
		priorityLevelConfigurations(),
	}
}

// version is the group and version in which the kinds are stored.
var version = flowcontrolv1.SchemeGroupVersion
