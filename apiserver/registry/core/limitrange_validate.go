package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

func limitRangeSpec(spec *corev1.LimitRangeSpec) (errs field.ErrorList) {
	types := map[corev1.LimitType]bool{}
	for i := range spec.Limits {
		item, at := &spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, limitType(item.Type, at.Child("type"))...)
		if types[item.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types[item.Type] = true
		errs = append(errs, limits(item, at)...)
	}
	return errs
}

func limitType(t corev1.LimitType, at *field.Path) field.ErrorList {
	if errs := validation.QualifiedName(string(t), at); len(errs) > 0 {
		return errs
	}
	switch t {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	if strings.Contains(string(t), "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(at, t, "must be a standard limit type or fully qualified")}
}

func limits(item *corev1.LimitRangeItem, at *field.Path) (errs field.ErrorList) {
	nameRule := validation.ResourceName
	if item.Type == corev1.LimitTypePod || item.Type == corev1.LimitTypeContainer {
		nameRule = validation.ContainerResourceName
	}
	names := map[corev1.ResourceName]bool{}
	use := func(list corev1.ResourceList, field string) corev1.ResourceList {
		for name := range list {
			errs = append(errs, nameRule(name, at.Child(field).Key(string(name)))...)
			names[name] = true
		}
		return list
	}
	low, high := use(item.Min, "min"), use(item.Max, "max")
	var defaults, requests corev1.ResourceList
	if item.Type == corev1.LimitTypePod {
		for name, list := range map[string]corev1.ResourceList{"default": item.Default, "defaultRequest": item.DefaultRequest} {
			if len(list) > 0 {
				errs = append(errs, field.Forbidden(at.Child(name), "may not be specified when `type` is 'Pod'"))
			}
		}
	} else {
		defaults, requests = use(item.Default, "default"), use(item.DefaultRequest, "defaultRequest")
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := low[corev1.ResourceStorage]
		if _, most := high[corev1.ResourceStorage]; !least && !most {
			errs = append(errs, field.Required(at.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
		}
	}
	ratios := use(item.MaxLimitRequestRatio, "maxLimitRequestRatio")

	// Amounts of one resource, from small to large.
	type amounts struct {
		list corev1.ResourceList
		word string
	}
	least, request := amounts{low, "min value"}, amounts{requests, "default request value"}
	limit, most := amounts{defaults, "default value"}, amounts{high, "max value"}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		// order complains below field, about one of both, when small is larger than large.
		order := func(fieldName string, small, large amounts, blameLarge bool) {
			a, hasA := small.list[name]
			b, hasB := large.list[name]
			if !hasA || !hasB || a.Cmp(b) <= 0 {
				return
			}
			blamed := a
			if blameLarge {
				blamed = b
			}
			errs = append(errs, field.Invalid(at.Child(fieldName).Key(string(name)), blamed,
				fmt.Sprintf("%s %s is greater than %s %s", small.word, a.String(), large.word, b.String())))
		}
		order("min", least, most, false)
		order("defaultRequest", least, request, true)
		order("defaultRequest", request, most, false)
		order("defaultRequest", request, amounts{defaults, "default limit value"}, false)
		order("default", least, limit, false)
		order("default", limit, most, true)
		if ratio, ok := ratios[name]; ok {
			errs = append(errs, limitRatio(ratio, name, low, high, at.Child("maxLimitRequestRatio").Key(string(name)))...)
		}
		a, hasA := defaults[name]
		b, hasB := requests[name]
		if hasA && hasB && a.Cmp(b) != 0 && !validation.Overcommit(name) {
			errs = append(errs, field.Invalid(at.Child("defaultRequest").Key(string(name)), b,
				fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", a.String(), b.String(), name)))
		}
	}
	return errs
}

// limitRatio refuses ratios of limit and request that no container within the
// bounds could have.
func limitRatio(ratio resource.Quantity, name corev1.ResourceName, low, high corev1.ResourceList, at *field.Path) (errs field.ErrorList) {
	if ratio.Cmp(*resource.NewQuantity(1, resource.DecimalSI)) < 0 {
		errs = append(errs, field.Invalid(at, ratio, fmt.Sprintf("ratio %s is less than 1", ratio.String())))
	}
	least, hasLeast := low[name]
	most, hasMost := high[name]
	if !hasLeast || !hasMost {
		return errs
	}
	r, a, b := float64(ratio.Value()), least.Value(), most.Value()
	if ratio.Value() < resource.MaxMilliValue && a < resource.MaxMilliValue && b < resource.MaxMilliValue {
		r, a, b = float64(ratio.MilliValue())/1000, least.MilliValue(), most.MilliValue()
	}
	if largest := float64(b) / float64(a); r > largest {
		errs = append(errs, field.Invalid(at, ratio, fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), largest)))
	}
	return errs
}
