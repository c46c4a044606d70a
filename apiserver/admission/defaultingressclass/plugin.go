package defaultingressclass

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var classes = networkingv1.SchemeGroupVersion.WithResource("ingressclasses")

// classAnnotation named the class before spec.ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"

type plugin struct{ objects registry.Reader }

var _ admission.Mutator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "DefaultIngressClass" }

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	ingress, ok := a.Object.(*networkingv1.Ingress)
	if !ok || a.Operation != admission.Create || a.Subresource != "" || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, named := ingress.Annotations[classAnnotation]; named {
		return nil
	}
	list, err := p.objects.List(classes, "")
	if err != nil {
		return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, err)
	}
	var best *networkingv1.IngressClass
	for _, obj := range list {
		if c := obj.(*networkingv1.IngressClass); c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" && (best == nil || newer(c, best)) {
			best = c
		}
	}
	if best != nil {
		ingress.Spec.IngressClassName = &best.Name
	}
	return nil
}

// newer decides between several defaults: the newest counts, then the first by name.
func newer(a, b *networkingv1.IngressClass) bool {
	if a.CreationTimestamp.UnixNano() != b.CreationTimestamp.UnixNano() {
		return a.CreationTimestamp.After(b.CreationTimestamp.Time)
	}
	return a.Name < b.Name
}
