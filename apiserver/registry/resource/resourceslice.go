package resource

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func resourceSlices() *registry.Resource {
	s := kind.Counted(func(obj *resourcev1.ResourceSlice) *resourcev1.ResourceSliceSpec { return &obj.Spec })
	s.DefaultFunc = func(slice *resourcev1.ResourceSlice) {
		for i := range slice.Spec.Devices {
			for j := range slice.Spec.Devices[i].Taints {
				stamp(&slice.Spec.Devices[i].Taints[j])
			}
		}
	}
	create, update := s.PrepareCreate, s.PrepareUpdate
	s.PrepareCreate = func(ctx context.Context, slice *resourcev1.ResourceSlice) {
		dropAlphaSlice(&slice.Spec, nil)
		create(ctx, slice)
	}
	s.PrepareUpdate = func(ctx context.Context, slice, old *resourcev1.ResourceSlice) {
		update(ctx, slice, old) // what is dropped after it has counted, as upstream
		dropAlphaSlice(&slice.Spec, &old.Spec)
	}
	s.WarningsFunc = func(_ context.Context, slice, _ *resourcev1.ResourceSlice) []string {
		if name := slice.Spec.Driver; name != strings.ToLower(name) {
			return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", name)}
		}
		return nil
	}
	s.ValidateCreate = func(_ context.Context, slice *resourcev1.ResourceSlice) field.ErrorList {
		return sliceSpec(&slice.Spec, nil)
	}
	s.ValidateChange = func(_ context.Context, slice, old *resourcev1.ResourceSlice) field.ErrorList {
		return sliceSpec(&slice.Spec, &old.Spec)
	}
	return &registry.Resource{
		GVR:              version.WithResource("resourceslices"),
		Kind:             "ResourceSlice",
		Singular:         "resourceslice",
		New:              kind.Make[resourcev1.ResourceSlice],
		NewList:          kind.Make[resourcev1.ResourceSliceList],
		SelectableFields: []string{resourcev1.ResourceSliceSelectorNodeName, resourcev1.ResourceSliceSelectorDriver, resourcev1.ResourceSliceSelectorPoolName},
		Fields: func(obj runtime.Object) fields.Set {
			spec := &obj.(*resourcev1.ResourceSlice).Spec
			node := ""
			if spec.NodeName != nil {
				node = *spec.NodeName
			}
			return fields.Set{
				resourcev1.ResourceSliceSelectorNodeName: node,
				resourcev1.ResourceSliceSelectorDriver:   spec.Driver,
				resourcev1.ResourceSliceSelectorPoolName: spec.Pool.Name,
			}
		},
		Also:     olderResourceSlice(),
		Strategy: s,
	}
}
