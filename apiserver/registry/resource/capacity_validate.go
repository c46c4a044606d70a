package resource

import (
	"fmt"
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// capacity checks one capacity of a device: how it may be shared out is said only of
// devices that several may have.
func capacity(c *resourcev1.DeviceCapacity, shared bool, at *field.Path) field.ErrorList {
	p, at := c.RequestPolicy, at.Child("requestPolicy")
	switch {
	case p == nil:
		return nil
	case !shared:
		return field.ErrorList{field.Forbidden(at, "allowMultipleAllocations must be true")}
	case len(p.ValidValues) > 0 && p.ValidRange != nil:
		return field.ErrorList{field.Forbidden(at, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case len(p.ValidValues) > 0 && p.Default == nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validValues is defined")}
	case len(p.ValidValues) > 0:
		return validValues(p.ValidValues, *p.Default, c.Value, at.Child("validValues"))
	case p.ValidRange != nil && p.Default == nil:
		return field.ErrorList{field.Required(at.Child("default"), "required when validRange is defined")}
	case p.ValidRange != nil:
		return validRange(p.ValidRange, *p.Default, c.Value, at.Child("validRange"))
	}
	return nil
}

// mostValidValues is how many values a policy may list.
const mostValidValues = 10

func validValues(values []resource.Quantity, def, most resource.Quantity, at *field.Path) (errs field.ErrorList) {
	for i := 1; i < len(values); i++ {
		if values[i-1].Cmp(values[i]) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), values[i].String(), "values must be sorted in ascending order"))
		}
	}
	found := false
	errs = append(errs, list(values, mostValidValues, func(q resource.Quantity) string { return q.AsDec().String() }, at,
		func(q *resource.Quantity, at *field.Path) field.ErrorList {
			found = found || q.Cmp(def) == 0
			if q.Cmp(most) > 0 {
				return field.ErrorList{field.Invalid(at, q.String(), fmt.Sprintf("option is larger than capacity value: %s", most.String()))}
			}
			return nil
		})...)
	if !found {
		errs = append(errs, field.Invalid(at, def.String(), "default value is not valid according to the requestPolicy"))
	}
	return errs
}

// a bound is a quantity of a range with the name of its field.
type bound struct {
	name string
	q    *resource.Quantity
}

func validRange(r *resourcev1.CapacityRequestPolicyRange, def, most resource.Quantity, at *field.Path) (errs field.ErrorList) {
	if r.Min == nil {
		return field.ErrorList{field.Required(at.Child("min"), "required when validRange is defined")}
	}
	above := func(name string, q, limit *resource.Quantity, detail string) {
		if q.Cmp(*limit) > 0 {
			errs = append(errs, field.Invalid(at.Child(name), q.String(), detail+limit.String()))
		}
	}
	above("min", r.Min, &most, "min is larger than capacity value: ")
	if def.Cmp(*r.Min) < 0 {
		errs = append(errs, field.Invalid(at.Child("default"), def.String(), "default is less than min: "+r.Min.String()))
	}
	if r.Max != nil {
		above("max", r.Min, r.Max, "min is larger than max: ")
		above("max", r.Max, &most, "max is larger than capacity value: ")
		above("default", &def, r.Max, "default is more than max: ")
	}
	bounds := []bound{{"default", &def}, {"min", r.Min}, {"max", r.Max}, {"step", r.Step}}
	fractions := false
	for _, b := range bounds {
		fractions = fractions || b.q != nil && fractional(b.q)
	}
	if fractions {
		if unsafe := tooFine(bounds, at); len(unsafe) > 0 {
			return append(errs, unsafe...)
		}
	}
	return append(errs, steps(r, bounds, most, fractions, at)...)
}

// steps checks that what a range names can be reached from its lower end.
func steps(r *resourcev1.CapacityRequestPolicyRange, bounds []bound, most resource.Quantity, fractions bool, at *field.Path) (errs field.ErrorList) {
	p := at.Child("step")
	if r.Step == nil {
		return nil
	}
	if r.Step.Sign() <= 0 {
		return field.ErrorList{field.Invalid(p, r.Step.String(), "must be greater than zero")}
	}
	next := r.Min.DeepCopy()
	next.Add(*r.Step)
	if next.Cmp(most) > 0 {
		errs = append(errs, field.Invalid(p, r.Step.String(), fmt.Sprintf("one step %s is larger than capacity value: %s", next.String(), most.String())))
	}
	if !fractions {
		if unsafe := outside(bounds, at); len(unsafe) > 0 {
			return append(errs, unsafe...)
		}
	}
	value := (*resource.Quantity).Value
	if fractions {
		value = (*resource.Quantity).MilliValue
	}
	for _, b := range bounds {
		if (b.name == "default" || b.name == "max") && b.q != nil && (value(b.q)-value(r.Min))%value(r.Step) != 0 {
			errs = append(errs, field.Invalid(p, b.q.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step.String(), r.Min.String())))
		}
	}
	return errs
}

func fractional(q *resource.Quantity) bool {
	d := *q
	return d.AsDec().Cmp(resource.NewQuantity(d.Value(), resource.DecimalSI).AsDec()) != 0
}

// tooFine refuses what thousandths cannot express.
func tooFine(bounds []bound, at *field.Path) (errs field.ErrorList) {
	for _, b := range bounds {
		if b.q != nil && b.q.Cmp(*resource.NewMilliQuantity(b.q.MilliValue(), b.q.Format)) != 0 {
			errs = append(errs, field.Invalid(at.Child(b.name), b.q.String(), "value cannot be represented as a milli value"))
		}
	}
	return errs
}

// outside refuses what an int64 from 0 up cannot express.
func outside(bounds []bound, at *field.Path) (errs field.ErrorList) {
	for _, b := range bounds {
		switch {
		case b.q == nil:
		case b.q.Sign() < 0:
			errs = append(errs, field.Invalid(at.Child(b.name), b.q.String(), apivalidation.IsNegativeErrorMsg))
		case b.q.CmpInt64(math.MaxInt64) > 0:
			errs = append(errs, field.Invalid(at.Child(b.name), b.q.String(), "must not be larger than 9223372036854775807"))
		}
	}
	return errs
}
