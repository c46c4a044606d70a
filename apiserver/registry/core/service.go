package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var serviceHalves = kind.Split(func(obj *corev1.Service) (*corev1.ServiceSpec, *corev1.ServiceStatus) {
	return &obj.Spec, &obj.Status
})

func services() *registry.Resource {
	s := serviceHalves.MainWithoutGeneration()
	s.Name = apivalidation.NameIsDNSLabel
	s.Fixed.CreateOnUpdate = true
	return &registry.Resource{
		GVR:           version.WithResource("services"),
		Kind:          "Service",
		Singular:      "service",
		ShortNames:    []string{"svc"},
		Categories:    []string{"all"},
		Namespaced:    true,
		New:           kind.Make[corev1.Service],
		NewList:       kind.Make[corev1.ServiceList],
		StoragePrefix: "services/specs",
		Strategy:      s,
		Status:        serviceHalves.Status(),
	}
}
