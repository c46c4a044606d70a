package networking

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func ipAddresses() *registry.Resource {
	s := registry.Funcs[*networkingv1.IPAddress]{}
	s.Name = func(name string, _ bool) []string {
		var messages []string
		for _, err := range utilvalidation.IsValidIP(nil, name) {
			messages = append(messages, err.Detail)
		}
		return messages
	}
	s.ValidateCreate = func(_ context.Context, a *networkingv1.IPAddress) field.ErrorList { return ipAddress(a) }
	s.ValidateChange = func(_ context.Context, a, old *networkingv1.IPAddress) field.ErrorList {
		return append(ipAddress(a), validation.Frozen(a.Spec.ParentRef, old.Spec.ParentRef, field.NewPath("spec", "parentRef"))...)
	}
	return &registry.Resource{
		GVR:        version.WithResource("ipaddresses"),
		Kind:       "IPAddress",
		Singular:   "ipaddress",
		ShortNames: []string{"ip"},
		New:        kind.Make[networkingv1.IPAddress],
		NewList:    kind.Make[networkingv1.IPAddressList],
		Strategy:   s,
	}
}
