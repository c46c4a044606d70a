package storage

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func csiStorageCapacities() *registry.Resource {
	s := registry.Funcs[*storagev1.CSIStorageCapacity]{
		ValidateCreate: func(_ context.Context, c *storagev1.CSIStorageCapacity) field.ErrorList {
			return storageCapacity(c, nil)
		},
		ValidateChange: func(_ context.Context, c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			return storageCapacity(c, old)
		},
		WarningsFunc: func(_ context.Context, c, _ *storagev1.CSIStorageCapacity) []string {
			return validation.NodeLabelSelectorWarnings(c.NodeTopology, field.NewPath("nodeTopology"))
		},
	}
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:        version.WithResource("csistoragecapacities"),
		Kind:       "CSIStorageCapacity",
		Singular:   "csistoragecapacity",
		Namespaced: true,
		New:        kind.Make[storagev1.CSIStorageCapacity],
		NewList:    kind.Make[storagev1.CSIStorageCapacityList],
		Strategy:   s,
	}
}

// storageCapacity checks what a driver says of its room. What it says that of does
// not change; old is nil for a new object.
func storageCapacity(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
	topology, class := field.NewPath("nodeTopology"), field.NewPath("storageClassName")
	var before *metav1.LabelSelector
	if old != nil {
		before = old.NodeTopology
	}
	errs := validation.LabelSelector(c.NodeTopology, before, topology)
	errs = append(errs, validation.ObjectName(c.StorageClassName, apivalidation.NameIsDNSSubdomain, class)...)
	if c.Capacity != nil && c.Capacity.Sign() < 0 {
		errs = append(errs, field.Invalid(field.NewPath("capacity"), c.Capacity.String(), apivalidation.IsNegativeErrorMsg))
	}
	if old == nil {
		return errs
	}
	if !validation.Equal(c.NodeTopology, old.NodeTopology) {
		errs = append(errs, field.Invalid(topology, c.NodeTopology, validation.ImmutableError))
	}
	if c.StorageClassName != old.StorageClassName {
		errs = append(errs, field.Invalid(class, c.StorageClassName, validation.ImmutableError))
	}
	return errs
}
