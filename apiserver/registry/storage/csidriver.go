package storage

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func csiDrivers() *registry.Resource {
	s := kind.Counted(func(obj *storagev1.CSIDriver) *storagev1.CSIDriverSpec { return &obj.Spec })
	s.DefaultFunc = defaultCSIDriver
	s.ValidateCreate, s.ValidateChange = validateCSIDriver, validateCSIDriverUpdate
	s.PrepareCreate = nil // the generation is counted from the first change on
	s.WarningsFunc = func(_ context.Context, d, old *storagev1.CSIDriver) []string {
		if len(d.Spec.TokenRequests) == 0 || d.Spec.ServiceAccountTokenInSecrets != nil ||
			old != nil && validation.Equal(d.Spec.TokenRequests, old.Spec.TokenRequests) {
			return nil
		}
		return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
	}
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
