package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func ipAddresses() *registry.Resource {
	s := registry.Funcs[*networkingv1.IPAddress]{}
	s.Name = func(name string, _ bool) []string {
		var messages []string
		for _, err := range validation.IsValidIP(nil, name) {
			messages = append(messages, err.Detail)
		}
		return messages
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
