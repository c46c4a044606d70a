package storage

import (
	"context"
	"reflect"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func volumeAttributesClasses() *registry.Resource {
	s := registry.Funcs[*storagev1.VolumeAttributesClass]{
		ValidateCreate: func(_ context.Context, class *storagev1.VolumeAttributesClass) field.ErrorList {
			return attributesClass(class)
		},
		ValidateChange: func(_ context.Context, class, old *storagev1.VolumeAttributesClass) field.ErrorList {
			errs := attributesClass(class)
			if class.DriverName != old.DriverName {
				errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
			}
			if !reflect.DeepEqual(class.Parameters, old.Parameters) {
				errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
			}
			return errs
		},
	}
	return &registry.Resource{
		GVR:        version.WithResource("volumeattributesclasses"),
		Kind:       "VolumeAttributesClass",
		Singular:   "volumeattributesclass",
		ShortNames: []string{"vac"},
		New:        kind.Make[storagev1.VolumeAttributesClass],
		NewList:    kind.Make[storagev1.VolumeAttributesClassList],
		Strategy:   s,
	}
}

func attributesClass(class *storagev1.VolumeAttributesClass) field.ErrorList {
	at := field.NewPath("parameters")
	errs := append(driverName(class.DriverName, field.NewPath("driverName")), parameters(class.Parameters, at)...)
	if len(class.Parameters) == 0 {
		errs = append(errs, field.Required(at, "must contain at least one key/value pair"))
	}
	return errs
}
