package resource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func resourceSlices() *registry.Resource {
	s := kind.Counted(func(obj *resourcev1.ResourceSlice) *resourcev1.ResourceSliceSpec { return &obj.Spec })
	return &registry.Resource{
		GVR:      version.WithResource("resourceslices"),
		Kind:     "ResourceSlice",
		Singular: "resourceslice",
		New:      kind.Make[resourcev1.ResourceSlice],
		NewList:  kind.Make[resourcev1.ResourceSliceList],
		Strategy: s,
	}
}
