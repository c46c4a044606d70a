package networking

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

var ingressHalves = kind.Split(func(obj *networkingv1.Ingress) (*networkingv1.IngressSpec, *networkingv1.IngressStatus) {
	return &obj.Spec, &obj.Status
})

func ingresses() *registry.Resource {
	s := ingressHalves.Main()
	s.ValidateCreate = func(_ context.Context, ingress *networkingv1.Ingress) field.ErrorList {
		errs := ingressSpec(&ingress.Spec, nil)
		if class, ok := ingress.Annotations[classAnnotation]; ok && ingress.Spec.IngressClassName != nil && class != *ingress.Spec.IngressClassName {
			errs = append(errs, field.Invalid(field.NewPath("annotations").Child(classAnnotation), class, "must match `ingressClassName` when both are specified"))
		}
		return errs
	}
	s.ValidateChange = func(_ context.Context, ingress, old *networkingv1.Ingress) field.ErrorList {
		return ingressSpec(&ingress.Spec, &old.Spec)
	}
	s.WarningsFunc = func(_ context.Context, ingress, old *networkingv1.Ingress) []string {
		if _, ok := ingress.Annotations[classAnnotation]; ok && old == nil && ingress.Spec.IngressClassName == nil {
			return []string{`annotation "` + classAnnotation + `" is deprecated, please use 'spec.ingressClassName' instead`}
		}
		return nil
	}
	status := ingressHalves.Status()
	status.ValidateChange = func(_ context.Context, ingress, old *networkingv1.Ingress) field.ErrorList {
		return ingressAddresses(&ingress.Status.LoadBalancer, &old.Status.LoadBalancer)
	}
	status.WarningsFunc = func(_ context.Context, ingress, _ *networkingv1.Ingress) (list []string) {
		for i := range ingress.Status.LoadBalancer.Ingress {
			list = append(list, validation.IPWarning(ingressPoints.Index(i), ingress.Status.LoadBalancer.Ingress[i].IP)...)
		}
		return list
	}
	return &registry.Resource{
		GVR:           version.WithResource("ingresses"),
		Kind:          "Ingress",
		Singular:      "ingress",
		ShortNames:    []string{"ing"},
		Namespaced:    true,
		New:           kind.Make[networkingv1.Ingress],
		NewList:       kind.Make[networkingv1.IngressList],
		StoragePrefix: "ingress",
		Strategy:      s,
		Status:        status,
	}
}

// classAnnotation named the class before spec.ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"
