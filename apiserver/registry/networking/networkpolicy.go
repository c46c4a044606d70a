package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func networkPolicies() *registry.Resource {
	s := kind.Counted(func(obj *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicySpec { return &obj.Spec })
	return &registry.Resource{
		GVR:        version.WithResource("networkpolicies"),
		Kind:       "NetworkPolicy",
		Singular:   "networkpolicy",
		ShortNames: []string{"netpol"},
		Namespaced: true,
		New:        kind.Make[networkingv1.NetworkPolicy],
		NewList:    kind.Make[networkingv1.NetworkPolicyList],
		Strategy:   s,
	}
}
