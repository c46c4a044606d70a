package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		deployments(),
		replicaSets(),
		statefulSets(),
		daemonSets(),
		controllerRevisions(),
	}
}

// version is the group and version in which the kinds are stored.
var version = appsv1.SchemeGroupVersion
