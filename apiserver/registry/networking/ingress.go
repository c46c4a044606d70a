package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var ingressHalves = kind.Split(func(obj *networkingv1.Ingress) (*networkingv1.IngressSpec, *networkingv1.IngressStatus) {
	return &obj.Spec, &obj.Status
})

func ingresses() *registry.Resource {
	s := ingressHalves.Main()
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
		Status:        ingressHalves.Status(),
	}
}
