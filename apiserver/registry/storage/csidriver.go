package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func csiDrivers() *registry.Resource {
	s := kind.Counted(func(obj *storagev1.CSIDriver) *storagev1.CSIDriverSpec { return &obj.Spec })
	s.DefaultFunc = defaultCSIDriver
	s.ValidateCreate, s.ValidateChange = validateCSIDriver, validateCSIDriverUpdate
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("csidrivers"),
		Kind:     "CSIDriver",
		Singular: "csidriver",
		New:      kind.Make[storagev1.CSIDriver],
		NewList:  kind.Make[storagev1.CSIDriverList],
		Strategy: s,
	}
}

func defaultCSIDriver(driver *storagev1.CSIDriver) {
	spec := &driver.Spec
	for _, b := range []struct {
		field **bool
		value bool
	}{
		{&spec.AttachRequired, true}, {&spec.PodInfoOnMount, false}, {&spec.StorageCapacity, false},
		{&spec.RequiresRepublish, false}, {&spec.SELinuxMount, false}, {&spec.PreventPodSchedulingIfMissing, false},
	} {
		if *b.field == nil {
			*b.field = &b.value
		}
	}
	if spec.FSGroupPolicy == nil {
		policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
		spec.FSGroupPolicy = &policy
	}
	if len(spec.VolumeLifecycleModes) == 0 {
		spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}
