package networking

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func networkPolicies() *registry.Resource {
	s := kind.Counted(func(obj *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicySpec { return &obj.Spec })
	s.DefaultFunc = defaultNetworkPolicy
	s.PrepareUpdate = func(_ context.Context, policy, old *networkingv1.NetworkPolicy) {
		// Every difference counts here, that of nothing and an empty list too.
		kind.SetGeneration(policy, old, !reflect.DeepEqual(policy.Spec, old.Spec))
	}
	s.ValidateCreate = func(_ context.Context, policy *networkingv1.NetworkPolicy) field.ErrorList {
		return networkPolicy(&policy.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, policy, old *networkingv1.NetworkPolicy) field.ErrorList {
		return networkPolicy(&policy.Spec, &old.Spec)
	}
	s.WarningsFunc = func(_ context.Context, policy, _ *networkingv1.NetworkPolicy) []string {
		return networkPolicyWarnings(&policy.Spec)
	}
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

// defaultNetworkPolicy makes a policy without types one for ingress, and for
// egress if it has egress rules.
func defaultNetworkPolicy(policy *networkingv1.NetworkPolicy) {
	spec := &policy.Spec
	for i := range spec.Ingress {
		defaultPorts(spec.Ingress[i].Ports)
	}
	for i := range spec.Egress {
		defaultPorts(spec.Egress[i].Ports)
	}
	if len(spec.PolicyTypes) > 0 {
		return
	}
	spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(spec.Egress) > 0 {
		spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
}

func defaultPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		if ports[i].Protocol == nil {
			tcp := corev1.ProtocolTCP
			ports[i].Protocol = &tcp
		}
	}
}
