package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

// counters checks the counters of a set: shared ones, or those that a device takes.
func counters(m map[string]resourcev1.Counter, most int, at *field.Path) (errs field.ErrorList) {
	if len(m) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	if len(m) > most {
		return field.ErrorList{field.TooMany(at, len(m), most)}
	}
	for _, name := range sortedKeys(m) {
		errs = append(errs, validation.ShortName(name, at)...)
	}
	return errs
}

// counterSetName checks the name of a set.
func counterSetName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return validation.ShortName(name, at)
}

func sharedCounters(sets []resourcev1.CounterSet, at *field.Path) field.ErrorList {
	return list(sets, resourcev1.ResourceSliceMaxCounterSets, func(s resourcev1.CounterSet) string { return s.Name }, at, func(s *resourcev1.CounterSet, at *field.Path) field.ErrorList {
		return append(counterSetName(s.Name, at.Child("name")), counters(s.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet, at.Child("counters"))...)
	})
}

func consumedCounters(items []resourcev1.DeviceCounterConsumption, at *field.Path) field.ErrorList {
	return list(items, resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, func(c resourcev1.DeviceCounterConsumption) string { return c.CounterSet }, at,
		func(c *resourcev1.DeviceCounterConsumption, at *field.Path) field.ErrorList {
			return append(counterSetName(c.CounterSet, at.Child("counterSet")),
				counters(c.Counters, resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption, at.Child("counters"))...)
		})
}

// bindingConditions checks what must hold, and what must not, before a pod that has
// got the device is bound: both or none, and nothing twice.
func bindingConditions(wanted, failed []string, at *field.Path) field.ErrorList {
	one, two := at.Child("bindingConditions"), at.Child("bindingFailureConditions")
	name := func(c *string, at *field.Path) field.ErrorList { return metav1validation.ValidateLabelName(*c, at) }
	errs := list(wanted, resourcev1.BindingConditionsMaxSize, text, one, name)
	errs = append(errs, list(failed, resourcev1.BindingFailureConditionsMaxSize, text, two, name)...)
	has := map[string]bool{}
	for _, c := range wanted {
		has[c] = true
	}
	for i, c := range failed {
		if has[c] {
			errs = append(errs, field.Invalid(two.Index(i), c, "bindingFailureConditions must not overlap with bindingConditions"))
		}
	}
	if len(wanted) == 0 && len(failed) > 0 {
		errs = append(errs, field.Invalid(one, wanted, "bindingConditions are required to use bindingFailureConditions"))
	}
	if len(failed) == 0 && len(wanted) > 0 {
		errs = append(errs, field.Invalid(two, failed, "bindingFailureConditions are required to use bindingConditions"))
	}
	return errs
}
