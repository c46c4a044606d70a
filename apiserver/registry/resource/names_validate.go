package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// list checks the items of a list that holds at most most, each key once; a nil key
// does not look for duplicates.
func list[T any](items []T, most int, key func(T) string, at *field.Path, check func(*T, *field.Path) field.ErrorList) (errs field.ErrorList) {
	if most >= 0 && len(items) > most {
		return field.ErrorList{field.TooMany(at, len(items), most)}
	}
	seen := map[string]bool{}
	for i := range items {
		errs = append(errs, check(&items[i], at.Index(i))...)
		if key == nil {
			continue
		}
		k := key(items[i])
		if seen[k] {
			errs = append(errs, field.Duplicate(at.Index(i), duplicate(items[i], k)))
		}
		seen[k] = true
	}
	return errs
}

// duplicate is what is shown of an item that is there twice: all of it where upstream's
// generated rules look for it.
func duplicate(item any, key string) any {
	switch item.(type) {
	case resourcev1.DeviceRequest, resourcev1.DeviceSubRequest, resourcev1.CounterSet, resourcev1.DeviceCounterConsumption,
		resourcev1.ResourceClaimConsumerReference, resourcev1.AllocatedDeviceStatus:
		return item
	}
	return key
}

func text(s string) string { return s }

// poolName checks one or more DNS subdomains with slashes between them.
func poolName(name string, at *field.Path) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(name) > resourcev1.PoolNameMaxLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.PoolNameMaxLength))
	}
	for part := range strings.SplitSeq(name, "/") {
		errs = append(errs, validation.DNSSubdomain(part, at)...)
	}
	return errs
}

// qualified checks the name of an attribute or capacity: an identifier, with or
// without the domain of a driver.
func qualified(name string, at *field.Path) (errs field.ErrorList) {
	domain, id, ok := strings.Cut(name, "/")
	if !ok {
		return identifier(name, at)
	}
	if strings.Contains(id, "/") {
		return nil // as upstream, which looks at one or two parts
	}
	if domain == "" {
		errs = append(errs, field.Invalid(at, "", "the domain must not be empty"))
	} else {
		errs = append(errs, validation.CSIDriverName(domain, at)...)
	}
	if id == "" {
		return append(errs, field.Invalid(at, "", "the name must not be empty"))
	}
	return append(errs, identifier(id, at)...)
}

func identifier(id string, at *field.Path) (errs field.ErrorList) {
	if len(id) > resourcev1.DeviceMaxIDLength {
		errs = append(errs, field.TooLong(at, "", resourcev1.DeviceMaxIDLength))
	}
	for _, m := range content.IsCIdentifier(id) {
		errs = append(errs, field.Invalid(at, id, m))
	}
	return errs
}

// opaque checks parameters for a driver, which are a JSON object.
func opaque(c *resourcev1.DeviceConfiguration, stored bool, at *field.Path) field.ErrorList {
	at = at.Child("opaque")
	if c.Opaque == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validation.DriverName(c.Opaque.Driver, at.Child("driver"))
	return append(errs, object(c.Opaque.Parameters, stored, resourcev1.OpaqueParametersMaxLength, at.Child("parameters"))...)
}

func object(raw runtime.RawExtension, stored bool, most int, at *field.Path) field.ErrorList {
	var v any
	switch {
	case len(raw.Raw) == 0:
		return field.ErrorList{field.Required(at, "")}
	case !stored && len(raw.Raw) > most:
		return field.ErrorList{field.TooLong(at, "", most)}
	}
	if err := json.Unmarshal(raw.Raw, &v); err != nil {
		return field.ErrorList{field.Invalid(at, "<value omitted>", fmt.Sprintf("error parsing data as JSON: %v", err))}
	}
	if v == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	if _, ok := v.(map[string]any); !ok {
		return field.ErrorList{field.Invalid(at, "<value omitted>", "must be a valid JSON object")}
	}
	return nil
}

var effects = []resourcev1.DeviceTaintEffect{resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone}

func taint(t, old *resourcev1.DeviceTaint, at *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabelName(t.Key, at.Child("key"))
	if t.Value != "" {
		errs = append(errs, labelValue(t.Value, at.Child("value"))...)
	}
	if old != nil && old.Effect == t.Effect {
		return errs
	}
	if t.Effect == "" {
		return append(errs, field.Required(at.Child("effect"), ""))
	}
	return append(errs, effect(t.Effect, at.Child("effect"))...)
}

func effect(e resourcev1.DeviceTaintEffect, at *field.Path) field.ErrorList {
	if slices.Contains(effects, e) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, e, effects)}
}

func labelValue(value string, at *field.Path) (errs field.ErrorList) {
	for _, m := range utilvalidation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(at, value, m))
	}
	return errs
}

func tolerations(items []resourcev1.DeviceToleration, at *field.Path) (errs field.ErrorList) {
	for i := range items {
		t, p := &items[i], at.Index(i)
		if t.Key != "" {
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, p.Child("key"))...)
		}
		switch t.Operator {
		case resourcev1.DeviceTolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(p.Child("value"), t.Value, "must be empty for operator `Exists`"))
			}
		case resourcev1.DeviceTolerationOpEqual:
			errs = append(errs, labelValue(t.Value, p.Child("value"))...)
		case "":
			errs = append(errs, field.Required(p.Child("operator"), ""))
		default:
			errs = append(errs, field.NotSupported(p.Child("operator"), t.Operator, []resourcev1.DeviceTolerationOperator{resourcev1.DeviceTolerationOpEqual, resourcev1.DeviceTolerationOpExists}))
		}
		if t.Effect != "" {
			errs = append(errs, effect(t.Effect, p.Child("effect"))...)
		}
	}
	return errs
}

func taintRule(spec, old *resourcev1.DeviceTaintRuleSpec) (errs field.ErrorList) {
	at := field.NewPath("spec")
	if s, p := spec.DeviceSelector, at.Child("deviceSelector"); s != nil {
		if s.Driver != nil {
			errs = append(errs, validation.CSIDriverName(*s.Driver, p.Child("driver"))...)
		}
		if s.Pool != nil {
			errs = append(errs, poolName(*s.Pool, p.Child("pool"))...)
		}
		if s.Device != nil {
			errs = append(errs, validation.DNSLabel(*s.Device, p.Child("device"))...)
		}
	}
	var before *resourcev1.DeviceTaint
	if old != nil {
		before = &old.Taint
	}
	return append(errs, taint(&spec.Taint, before, at.Child("taint"))...)
}

// sortedKeys returns the keys of m in order, so that errors come in one.
func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
