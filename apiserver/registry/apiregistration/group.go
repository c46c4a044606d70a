package apiregistration

import (
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		apiServices(),
	}
}

// version is the group and version in which the kinds are stored.
var version = apiregistrationv1.SchemeGroupVersion
