package node

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func runtimeClasses() *registry.Resource {
	s := registry.Funcs[*nodev1.RuntimeClass]{}
	s.ValidateCreate = func(_ context.Context, class *nodev1.RuntimeClass) field.ErrorList {
		return validation.DNSLabel(class.Handler, field.NewPath("handler"))
	}
	s.ValidateChange = func(_ context.Context, class, old *nodev1.RuntimeClass) field.ErrorList {
		return validation.Immutable(class.Handler, old.Handler, field.NewPath("handler"))
	}
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
