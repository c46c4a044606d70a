package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func leases() *registry.Resource {
	s := registry.Funcs[*coordinationv1.Lease]{}
	s.Fixed.CreateOnUpdate = true
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("leases"),
		Kind:       "Lease",
		Singular:   "lease",
		Namespaced: true,
		New:        kind.Make[coordinationv1.Lease],
		NewList:    kind.Make[coordinationv1.LeaseList],
		Strategy:   s,
	}
}
