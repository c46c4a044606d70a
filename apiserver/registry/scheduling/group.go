package scheduling

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		priorityClasses(),
		podGroups(),
		workloads(),
	}
}

// version is the group and version in which the kinds are stored.
var version = schedulingv1.SchemeGroupVersion
