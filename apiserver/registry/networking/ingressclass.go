package networking

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func ingressClasses() *registry.Resource {
	s := kind.Counted(func(obj *networkingv1.IngressClass) *networkingv1.IngressClassSpec { return &obj.Spec })
	s.DefaultFunc = func(class *networkingv1.IngressClass) {
		if p := class.Spec.Parameters; p != nil && p.Scope == nil {
			scope := networkingv1.IngressClassParametersReferenceScopeCluster
			p.Scope = &scope
		}
	}
	s.ValidateCreate = func(_ context.Context, class *networkingv1.IngressClass) field.ErrorList {
		return ingressClass(class, nil)
	}
	s.ValidateChange = func(_ context.Context, class, old *networkingv1.IngressClass) field.ErrorList {
		return ingressClass(class, old)
	}
	return &registry.Resource{
		GVR:      version.WithResource("ingressclasses"),
		Kind:     "IngressClass",
		Singular: "ingressclass",
		New:      kind.Make[networkingv1.IngressClass],
		NewList:  kind.Make[networkingv1.IngressClassList],
		Strategy: s,
	}
}
