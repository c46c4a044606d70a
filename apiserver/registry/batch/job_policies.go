package batch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

var (
	failureActions = []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
		batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore}
	exitCodeOperators = []batchv1.PodFailurePolicyOnExitCodesOperator{batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn}
	conditionStatuses = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
)

// choice reports a value that is missing or not one of supported, as the rules
// of pod failure policies do.
func choice[T ~string](value T, supported []T, at *field.Path) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(at, fmt.Sprintf("valid values: %q", supported))}
	case !slices.Contains(supported, value):
		return field.ErrorList{field.NotSupported(at, value, supported)}
	default:
		return nil
	}
}

func podFailurePolicy(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	rules := spec.PodFailurePolicy.Rules
	if len(rules) > 20 {
		errs = append(errs, field.TooMany(at, len(rules), 20))
	}
	for i := range rules {
		r, p := &rules[i], at.Index(i)
		if r.Action == batchv1.PodFailurePolicyActionFailIndex && spec.BackoffLimitPerIndex == nil {
			errs = append(errs, field.Invalid(p.Child("action"), r.Action, "requires the backoffLimitPerIndex to be set"))
		} else {
			errs = append(errs, choice(r.Action, failureActions, p.Child("action"))...)
		}
		if r.OnExitCodes != nil {
			errs = append(errs, onExitCodes(spec, r.OnExitCodes, p.Child("onExitCodes"))...)
		}
		conditions := p.Child("onPodConditions")
		if n := len(r.OnPodConditions); n > 20 {
			errs = append(errs, field.TooMany(conditions, n, 20))
		}
		for j, c := range r.OnPodConditions {
			errs = append(errs, validation.QualifiedName(string(c.Type), conditions.Index(j).Child("type"))...)
			errs = append(errs, choice(c.Status, conditionStatuses, conditions.Index(j).Child("status"))...)
		}
		switch codes, conds := r.OnExitCodes != nil, len(r.OnPodConditions) > 0; {
		case codes && conds:
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
		case !codes && !conds:
			errs = append(errs, field.Invalid(p, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
		}
	}
	return errs
}

func onExitCodes(spec *batchv1.JobSpec, on *batchv1.PodFailurePolicyOnExitCodesRequirement, at *field.Path) field.ErrorList {
	errs := choice(on.Operator, exitCodeOperators, at.Child("operator"))
	if name := on.ContainerName; name != nil {
		named := func(c corev1.Container) bool { return c.Name == *name }
		if !slices.ContainsFunc(spec.Template.Spec.Containers, named) && !slices.ContainsFunc(spec.Template.Spec.InitContainers, named) {
			errs = append(errs, field.Invalid(at.Child("containerName"), *name, "must be one of the container or initContainer names in the pod template"))
		}
	}
	values := at.Child("values")
	switch n := len(on.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(values, on.Values, "at least one value is required"))
	case n > 255:
		errs = append(errs, field.TooMany(values, n, 255))
	}
	for i, code := range on.Values {
		if on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && code == 0 {
			errs = append(errs, field.Invalid(values.Index(i), code, "must not be 0 for the In operator"))
		}
		if slices.Contains(on.Values[:i], code) {
			errs = append(errs, field.Duplicate(values.Index(i), code))
		}
	}
	if !slices.IsSorted(on.Values) {
		errs = append(errs, field.Invalid(values, on.Values, "must be ordered"))
	}
	return errs
}

func successPolicy(spec *batchv1.JobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	rules := spec.SuccessPolicy.Rules
	switch n := len(rules); {
	case n == 0:
		errs = append(errs, field.Required(at, "at least one rules must be specified when the successPolicy is specified"))
	case n > 20:
		errs = append(errs, field.TooMany(at, n, 20))
	}
	if spec.Completions == nil {
		return errs // reported elsewhere
	}
	completions := *spec.Completions
	for i, r := range rules {
		p := at.Index(i)
		if r.SucceededCount == nil && r.SucceededIndexes == nil {
			errs = append(errs, field.Required(p, "at least one of succeededCount or succeededIndexes must be specified"))
		}
		total := int32(0)
		if r.SucceededIndexes != nil {
			const most = 64 * 1024
			path := p.Child("succeededIndexes")
			if len(*r.SucceededIndexes) > most {
				errs = append(errs, field.TooLong(path, "", most))
			}
			set, err := parseIndexes(*r.SucceededIndexes, completions)
			if err != nil {
				errs = append(errs, field.Invalid(path, *r.SucceededIndexes, fmt.Sprintf("error parsing succeededIndexes: %s", err)))
			}
			total = set.count()
		}
		if count := r.SucceededCount; count != nil {
			path := p.Child("succeededCount")
			errs = append(errs, validation.Nonnegative(int64(*count), path)...)
			if *count > completions {
				errs = append(errs, field.Invalid(path, *count, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions)))
			}
			if r.SucceededIndexes != nil && *count > total {
				errs = append(errs, field.Invalid(path, *count, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total)))
			}
		}
	}
	return errs
}

// indexes are ascending inclusive intervals, as "1,3-5" says.
type indexes [][2]int32

func (s indexes) count() (n int32) {
	for _, i := range s {
		n += i[1] - i[0] + 1
	}
	return n
}

// overlap returns the first index that is in both.
func (s indexes) overlap(other indexes) (index int32, ok bool) {
	for len(s) > 0 && len(other) > 0 {
		a, b := s[0], other[0]
		switch {
		case a[0] <= b[1] && b[0] <= a[1]:
			return max(a[0], b[0]), true
		case a[0] <= b[0]:
			s = s[1:]
		default:
			other = other[1:]
		}
	}
	return 0, false
}

func parseIndexes(text string, completions int32) (indexes, error) {
	var out indexes
	if text == "" {
		return nil, nil
	}
	last := int32(-1)
	for part := range strings.SplitSeq(text, ",") {
		first, second, ranged := strings.Cut(part, "-")
		if strings.Contains(second, "-") {
			return out, fmt.Errorf("the fragment %q violates the requirement that an index interval can have at most two parts separated by '-'", part)
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			return out, fmt.Errorf("cannot convert string to integer for index: %q", first)
		}
		to := from
		if ranged {
			if to, err = strconv.Atoi(second); err != nil {
				return out, fmt.Errorf("cannot convert string to integer for index: %q", second)
			}
		}
		for _, n := range []int{from, to} {
			if n >= int(completions) {
				return out, fmt.Errorf("too large index: %q", strconv.Itoa(n))
			}
		}
		if int32(from) <= last {
			return out, fmt.Errorf("non-increasing order, previous: %d, current: %d", last, from)
		}
		if ranged && to <= from {
			return out, fmt.Errorf("non-increasing order, previous: %d, current: %d", from, to)
		}
		out = append(out, [2]int32{int32(from), int32(to)})
		last = int32(to)
	}
	return out, nil
}
