package scheduling

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func priorityClasses() *registry.Resource {
	s := registry.Funcs[*schedulingv1.PriorityClass]{PrepareCreate: func(_ context.Context, obj *schedulingv1.PriorityClass) { obj.Generation = 1 }}
	s.DefaultFunc = func(obj *schedulingv1.PriorityClass) {
		if obj.PreemptionPolicy == nil {
			policy := corev1.PreemptLowerPriority
			obj.PreemptionPolicy = &policy
		}
	}
	s.ValidateCreate = validatePriorityClass
	s.ValidateChange = func(_ context.Context, obj, old *schedulingv1.PriorityClass) field.ErrorList {
		var errs field.ErrorList
		if obj.Value != old.Value {
			errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
		}
		return append(errs, validation.Immutable(obj.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
	}
	return &registry.Resource{
		GVR:        version.WithResource("priorityclasses"),
		Kind:       "PriorityClass",
		Singular:   "priorityclass",
		ShortNames: []string{"pc"},
		New:        kind.Make[schedulingv1.PriorityClass],
		NewList:    kind.Make[schedulingv1.PriorityClassList],
		Strategy:   s,
	}
}

// The classes that exist in every cluster, and the highest value for others.
const (
	systemPrefix    = "system-"
	highestForUsers = int32(1000000000)
)

var systemClasses = map[string]int32{
	"system-node-critical":    2*highestForUsers + 1000,
	"system-cluster-critical": 2 * highestForUsers,
}

func validatePriorityClass(_ context.Context, pc *schedulingv1.PriorityClass) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(pc.Name, systemPrefix) {
		reserved := func(format string, args ...any) {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"),
				"priority class names with '"+systemPrefix+"' prefix are reserved for system use only. error: "+fmt.Sprintf(format, args...)))
		}
		switch value, known := systemClasses[pc.Name]; {
		case !known:
			reserved("%v is not a known system priority class", pc.Name)
		case pc.Value != value:
			reserved("value of %v PriorityClass must be %v", pc.Name, value)
		case pc.GlobalDefault:
			reserved("globalDefault of %v PriorityClass must be %v", pc.Name, false)
		}
	} else if pc.Value > highestForUsers {
		errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestForUsers)))
	}
	if p := pc.PreemptionPolicy; p != nil && *p == "" {
		errs = append(errs, field.Required(field.NewPath("preemptionPolicy"), ""))
	} else if p != nil && *p != corev1.PreemptLowerPriority && *p != corev1.PreemptNever {
		errs = append(errs, field.NotSupported(field.NewPath("preemptionPolicy"), p, []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}))
	}
	return errs
}
