package discovery

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func endpointSlices() *registry.Resource {
	s := registry.Funcs[*discoveryv1.EndpointSlice]{}
	return &registry.Resource{
		GVR:        version.WithResource("endpointslices"),
		Kind:       "EndpointSlice",
		Singular:   "endpointslice",
		Namespaced: true,
		New:        kind.Make[discoveryv1.EndpointSlice],
		NewList:    kind.Make[discoveryv1.EndpointSliceList],
		Strategy:   s,
	}
}
