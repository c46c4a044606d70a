package discovery

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func endpointSlices() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("endpointslices"),
		Kind:       "EndpointSlice",
		Singular:   "endpointslice",
		Namespaced: true,
		New:        kind.Make[discoveryv1.EndpointSlice],
		NewList:    kind.Make[discoveryv1.EndpointSliceList],
		Strategy: registry.Funcs[*discoveryv1.EndpointSlice]{
			DefaultFunc: defaultEndpointSlice,
			PrepareCreate: func(_ context.Context, slice *discoveryv1.EndpointSlice) {
				slice.Generation = 1
				dropTopology(slice)
			},
			PrepareUpdate: func(_ context.Context, slice, old *discoveryv1.EndpointSlice) {
				kind.SetGeneration(slice, old, changed(slice, old))
				if !validation.Equal(slice.Endpoints, old.Endpoints) {
					dropTopology(slice)
				}
			},
			ValidateCreate: func(_ context.Context, slice *discoveryv1.EndpointSlice) field.ErrorList {
				return validateSlice(slice, nil)
			},
			ValidateChange: func(_ context.Context, slice, old *discoveryv1.EndpointSlice) field.ErrorList {
				return append(validateSlice(slice, old), validation.Frozen(slice.AddressType, old.AddressType, field.NewPath("addressType"))...)
			},
			WarningsFunc: sliceWarnings,
		},
	}
}

func defaultEndpointSlice(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Ports {
		port := &slice.Ports[i]
		if port.Name == nil {
			name := ""
			port.Name = &name
		}
		if port.Protocol == nil {
			protocol := corev1.ProtocolTCP
			port.Protocol = &protocol
		}
	}
}

func sliceWarnings(_ context.Context, slice, old *discoveryv1.EndpointSlice) (list []string) {
	if old == nil && slice.AddressType == discoveryv1.AddressTypeFQDN {
		list = append(list, "spec.addressType: FQDN endpoints are deprecated")
	}
	switch slice.Labels[discoveryv1.LabelManagedBy] {
	case "endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io":
		return list // they mend what they write
	}
	for i := range slice.Endpoints {
		for j, address := range slice.Endpoints[i].Addresses {
			list = append(list, validation.IPWarning(field.NewPath("endpoints").Index(i).Child("addresses").Index(j), address)...)
		}
	}
	return list
}

// dropTopology drops the topology of v1beta1, which v1 only reads.
func dropTopology(slice *discoveryv1.EndpointSlice) {
	for i := range slice.Endpoints {
		slice.Endpoints[i].DeprecatedTopology = nil
	}
}

// changed reports a difference in anything but the metadata, or in the labels.
func changed(slice, old *discoveryv1.EndpointSlice) bool {
	a, b := *slice, *old
	a.TypeMeta, b.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
	a.ObjectMeta, b.ObjectMeta = metav1.ObjectMeta{}, metav1.ObjectMeta{}
	return !validation.Equal(&a, &b) || !validation.Equal(slice.Labels, old.Labels)
}
