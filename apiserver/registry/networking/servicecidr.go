package networking

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var serviceCIDRHalves = kind.Split(func(obj *networkingv1.ServiceCIDR) (*networkingv1.ServiceCIDRSpec, *networkingv1.ServiceCIDRStatus) {
	return &obj.Spec, &obj.Status
})

func serviceCIDRs() *registry.Resource {
	s := serviceCIDRHalves.MainWithoutGeneration()
	s.ValidateCreate = func(_ context.Context, c *networkingv1.ServiceCIDR) field.ErrorList { return serviceCIDR(&c.Spec) }
	s.ValidateChange = func(_ context.Context, c, old *networkingv1.ServiceCIDR) field.ErrorList {
		return serviceCIDRUpdate(&c.Spec, &old.Spec)
	}
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
