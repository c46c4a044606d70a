package resource

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func deviceClasses() *registry.Resource {
	s := kind.Counted(func(obj *resourcev1.DeviceClass) *resourcev1.DeviceClassSpec { return &obj.Spec })
	s.Name = className
	s.ValidateCreate = func(_ context.Context, c *resourcev1.DeviceClass) field.ErrorList { return deviceClass(&c.Spec, nil) }
	s.ValidateChange = func(_ context.Context, c, old *resourcev1.DeviceClass) field.ErrorList {
		return deviceClass(&c.Spec, &old.Spec)
	}
	return &registry.Resource{
		GVR:      version.WithResource("deviceclasses"),
		Kind:     "DeviceClass",
		Singular: "deviceclass",
		New:      kind.Make[resourcev1.DeviceClass],
		NewList:  kind.Make[resourcev1.DeviceClassList],
		Also:     olderDeviceClass(),
		Strategy: s,
	}
}
