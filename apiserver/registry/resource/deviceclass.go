package resource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func deviceClasses() *registry.Resource {
	s := kind.Counted(func(obj *resourcev1.DeviceClass) *resourcev1.DeviceClassSpec { return &obj.Spec })
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
