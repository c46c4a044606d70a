package storage

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func storageClasses() *registry.Resource {
	s := registry.Funcs[*storagev1.StorageClass]{}
	s.DefaultFunc = defaultStorageClass
	s.ValidateCreate = validateStorageClass
	s.ValidateChange = validateStorageClassUpdate
	s.WarningsFunc = storageClassWarnings
	return &registry.Resource{
		GVR:        version.WithResource("storageclasses"),
		Kind:       "StorageClass",
		Singular:   "storageclass",
		ShortNames: []string{"sc"},
		New:        kind.Make[storagev1.StorageClass],
		NewList:    kind.Make[storagev1.StorageClassList],
		Strategy:   s,
	}
}

func defaultStorageClass(class *storagev1.StorageClass) {
	if class.ReclaimPolicy == nil {
		policy := corev1.PersistentVolumeReclaimDelete
		class.ReclaimPolicy = &policy
	}
	if class.VolumeBindingMode == nil {
		mode := storagev1.VolumeBindingImmediate
		class.VolumeBindingMode = &mode
	}
}

func validateStorageClass(_ context.Context, class *storagev1.StorageClass) field.ErrorList {
	errs := driverName(class.Provisioner, field.NewPath("provisioner"))
	errs = append(errs, parameters(class.Parameters, field.NewPath("parameters"))...)
	if p := class.ReclaimPolicy; p != nil && *p != "" && *p != corev1.PersistentVolumeReclaimDelete && *p != corev1.PersistentVolumeReclaimRetain {
		errs = append(errs, field.NotSupported(field.NewPath("reclaimPolicy"), p, []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain}))
	}
	switch m, at := class.VolumeBindingMode, field.NewPath("volumeBindingMode"); {
	case m == nil:
		errs = append(errs, field.Required(at, ""))
	case *m != storagev1.VolumeBindingImmediate && *m != storagev1.VolumeBindingWaitForFirstConsumer:
		errs = append(errs, field.NotSupported(at, m, []storagev1.VolumeBindingMode{storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer}))
	}
	return append(errs, topologies(class.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

// driverName checks the name of what provides volumes.
func driverName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return validation.QualifiedName(strings.ToLower(name), at)
}

// parameters checks what is handed to a driver.
func parameters(list map[string]string, at *field.Path) (errs field.ErrorList) {
	const maxParameters, maxBytes = 512, 256 << 10
	if len(list) > maxParameters {
		return field.ErrorList{field.TooLong(at, "", maxParameters)}
	}
	size := 0
	for key, value := range list {
		if key == "" {
			errs = append(errs, field.Invalid(at, key, "field can not be empty."))
		}
		size += len(key) + len(value)
	}
	if size > maxBytes {
		errs = append(errs, field.TooLong(at, "", maxBytes))
	}
	return errs
}

// topologies checks where volumes may be made: terms of labels with values, no two
// of them the same.
func topologies(terms []corev1.TopologySelectorTerm, at *field.Path) (errs field.ErrorList) {
	var seen []map[string]sets.Set[string]
	for i, term := range terms {
		keys := map[string]sets.Set[string]{}
		p := at.Index(i).Child("matchLabelExpressions")
		for j, r := range term.MatchLabelExpressions {
			values := sets.New[string]()
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(p.Index(j).Child("values"), ""))
			}
			for k, value := range r.Values {
				if values.Has(value) {
					errs = append(errs, field.Duplicate(p.Index(j).Child("values").Index(k), value))
				}
				values.Insert(value)
			}
			errs = append(errs, metav1validation.ValidateLabelName(r.Key, p.Index(j).Child("key"))...)
			if _, twice := keys[r.Key]; twice {
				errs = append(errs, field.Duplicate(p.Index(j).Child("key"), r.Key))
			}
			keys[r.Key] = values
		}
		if slices.ContainsFunc(seen, func(other map[string]sets.Set[string]) bool { return validation.Equal(other, keys) }) || len(keys) == 0 {
			errs = append(errs, field.Duplicate(p, ""))
		}
		seen = append(seen, keys)
	}
	return errs
}

func validateStorageClassUpdate(ctx context.Context, class, old *storagev1.StorageClass) field.ErrorList {
	errs := validateStorageClass(ctx, class)
	errs = append(errs, validation.Frozen(class.Parameters, old.Parameters, field.NewPath("parameters"))...)
	errs = append(errs, validation.Frozen(class.Provisioner, old.Provisioner, field.NewPath("provisioner"))...)
	errs = append(errs, validation.Frozen(class.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...)
	return append(errs, validation.Frozen(class.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
}

func storageClassWarnings(_ context.Context, class, _ *storagev1.StorageClass) (list []string) {
	for i := range class.AllowedTopologies {
		for j, r := range class.AllowedTopologies[i].MatchLabelExpressions {
			if text := validation.NodeLabelWarning(r.Key); text != "" {
				list = append(list, field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key").String()+": "+text)
			}
		}
	}
	return list
}
