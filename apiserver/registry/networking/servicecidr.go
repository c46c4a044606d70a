package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var serviceCIDRHalves = kind.Split(func(obj *networkingv1.ServiceCIDR) (*networkingv1.ServiceCIDRSpec, *networkingv1.ServiceCIDRStatus) {
	return &obj.Spec, &obj.Status
})

func serviceCIDRs() *registry.Resource {
	s := serviceCIDRHalves.MainWithoutGeneration()
	return &registry.Resource{
		GVR:      version.WithResource("servicecidrs"),
		Kind:     "ServiceCIDR",
		Singular: "servicecidr",
		New:      kind.Make[networkingv1.ServiceCIDR],
		NewList:  kind.Make[networkingv1.ServiceCIDRList],
		Strategy: s,
		Status:   serviceCIDRHalves.StatusKeepingMeta(),
	}
}
