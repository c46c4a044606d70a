package node

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func runtimeClasses() *registry.Resource {
	s := registry.Funcs[*nodev1.RuntimeClass]{}
	s.Fixed.CreateOnUpdate = true
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("runtimeclasses"),
		Kind:     "RuntimeClass",
		Singular: "runtimeclass",
		New:      kind.Make[nodev1.RuntimeClass],
		NewList:  kind.Make[nodev1.RuntimeClassList],
		Strategy: s,
	}
}
