package batch

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		jobs(),
		cronJobs(),
	}
}

// version is the group and version in which the kinds are stored.
var version = batchv1.SchemeGroupVersion
