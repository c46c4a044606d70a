package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		ingresses(),
		ingressClasses(),
		networkPolicies(),
		ipAddresses(),
		serviceCIDRs(),
	}
}

// version is the group and version in which the kinds are stored.
var version = networkingv1.SchemeGroupVersion
