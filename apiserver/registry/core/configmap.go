package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func configMaps() *registry.Resource {
	s := registry.Funcs[*corev1.ConfigMap]{
		ValidateCreate: func(_ context.Context, cm *corev1.ConfigMap) field.ErrorList { return configMapData(cm) },
		ValidateChange: func(_ context.Context, cm, old *corev1.ConfigMap) field.ErrorList {
			errs := immutableData(cm.Immutable, old.Immutable,
				dataField{"data", cm.Data, old.Data}, dataField{"binaryData", cm.BinaryData, old.BinaryData})
			return append(errs, configMapData(cm)...)
		},
	}
	return &registry.Resource{
		GVR:        version.WithResource("configmaps"),
		Kind:       "ConfigMap",
		Singular:   "configmap",
		ShortNames: []string{"cm"},
		Namespaced: true,
		New:        kind.Make[corev1.ConfigMap],
		NewList:    kind.Make[corev1.ConfigMapList],
		Strategy:   s,
	}
}

func configMapData(cm *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for key, value := range cm.Data {
		at := field.NewPath("data").Key(key)
		for _, m := range utilvalidation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(at, key, m))
		}
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		size += len(value)
	}
	for key, value := range cm.BinaryData {
		for _, m := range utilvalidation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(field.NewPath("binaryData").Key(key), key, m))
		}
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

// A dataField is a field that immutable ConfigMaps and Secrets may not change.
type dataField struct {
	name       string
	value, old any
}

// immutableData refuses changes once immutable was set, and that it is unset.
func immutableData(immutable, old *bool, data ...dataField) field.ErrorList {
	if old == nil || !*old {
		return nil
	}
	const detail = "field is immutable when `immutable` is set"
	var errs field.ErrorList
	if immutable == nil || !*immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), detail))
	}
	for _, f := range data {
		if !validation.Equal(f.value, f.old) {
			errs = append(errs, field.Forbidden(field.NewPath(f.name), detail))
		}
	}
	return errs
}
