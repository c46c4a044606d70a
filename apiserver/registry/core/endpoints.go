package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func endpoints() *registry.Resource {
	s := registry.Funcs[*corev1.Endpoints]{
		DefaultFunc: func(e *corev1.Endpoints) {
			for i := range e.Subsets {
				for j := range e.Subsets[i].Ports {
					if port := &e.Subsets[i].Ports[j]; port.Protocol == "" {
						port.Protocol = corev1.ProtocolTCP
					}
				}
			}
		},
		ValidateCreate: func(_ context.Context, e *corev1.Endpoints) field.ErrorList {
			return endpointSubsets(e.Subsets, field.NewPath("subsets"))
		},
		ValidateChange: func(_ context.Context, e, old *corev1.Endpoints) field.ErrorList {
			if validation.Equal(e.Subsets, old.Subsets) {
				return nil
			}
			return endpointSubsets(e.Subsets, field.NewPath("subsets"))
		},
		Fixed: registry.Traits{CreateOnUpdate: true},
	}
	return &registry.Resource{
		GVR:           version.WithResource("endpoints"),
		Kind:          "Endpoints",
		Deprecated:    "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
		Singular:      "endpoints",
		ShortNames:    []string{"ep"},
		Namespaced:    true,
		New:           kind.Make[corev1.Endpoints],
		NewList:       kind.Make[corev1.EndpointsList],
		StoragePrefix: "services/endpoints",
		Strategy:      s,
	}
}

func endpointSubsets(subsets []corev1.EndpointSubset, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range subsets {
		s, p := &subsets[i], at.Index(i)
		if len(s.Addresses) == 0 && len(s.NotReadyAddresses) == 0 {
			errs = append(errs, field.Required(p, "must specify `addresses` or `notReadyAddresses`"))
		}
		for j := range s.Addresses {
			errs = append(errs, endpointAddress(&s.Addresses[j], p.Child("addresses").Index(j))...)
		}
		for j := range s.NotReadyAddresses {
			errs = append(errs, endpointAddress(&s.NotReadyAddresses[j], p.Child("notReadyAddresses").Index(j))...)
		}
		for j := range s.Ports {
			errs = append(errs, endpointPort(&s.Ports[j], len(s.Ports) > 1, p.Child("ports").Index(j))...)
		}
	}
	return errs
}

func endpointAddress(a *corev1.EndpointAddress, at *field.Path) field.ErrorList {
	errs := validation.LegacyIP(at.Child("ip"), a.IP, nil)
	if a.Hostname != "" {
		errs = append(errs, validation.DNSLabel(a.Hostname, at.Child("hostname"))...)
	}
	if a.NodeName != nil {
		for _, m := range apivalidation.NameIsDNSSubdomain(*a.NodeName, false) {
			errs = append(errs, field.Invalid(at.Child("nodeName"), *a.NodeName, m))
		}
	}
	return append(errs, validation.EndpointIP(a.IP, at.Child("ip"))...)
}

func endpointPort(port *corev1.EndpointPort, named bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case port.Name != "":
		errs = append(errs, validation.DNSLabel(port.Name, at.Child("name"))...)
	case named:
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	for _, m := range utilvalidation.IsValidPortNum(int(port.Port)) {
		errs = append(errs, field.Invalid(at.Child("port"), port.Port, m))
	}
	errs = append(errs, validation.Protocol(port.Protocol, at.Child("protocol"))...)
	if port.AppProtocol != nil {
		errs = append(errs, validation.QualifiedName(*port.AppProtocol, at.Child("appProtocol"))...)
	}
	return errs
}
