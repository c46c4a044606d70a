package resource

import (
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/periplus/periplus/apiserver/validation"
)

// deviceSelectors checks expressions that choose devices: they are compiled, and may
// not be too costly. Those that are stored already are taken as they are.
func deviceSelectors(items []resourcev1.DeviceSelector, stored bool, at *field.Path) field.ErrorList {
	return list(items, resourcev1.DeviceSelectorsMaxSize, nil, at, func(s *resourcev1.DeviceSelector, at *field.Path) field.ErrorList {
		switch p := at.Child("cel", "expression"); {
		case s.CEL == nil:
			return field.ErrorList{field.Required(at.Child("cel"), "")}
		case stored:
			return nil
		case len(s.CEL.Expression) > resourcev1.CELSelectorExpressionMaxLength:
			return field.ErrorList{field.TooLong(p, "", resourcev1.CELSelectorExpressionMaxLength)}
		default:
			return compiled(s.CEL.Expression, p)
		}
	})
}

func compiled(expression string, at *field.Path) field.ErrorList {
	env := environment.NewExpressions
	r := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true}).CompileCELExpression(expression, dracel.Options{EnvType: &env})
	var problem *cel.Error
	switch {
	case r.Error == nil && r.MaxCost > resourcev1.CELSelectorExpressionMaxCost:
		return field.ErrorList{field.Forbidden(at, "too complex, exceeds cost limit")}
	case r.Error == nil:
		return nil
	case !errors.As(r.Error, &problem):
		return field.ErrorList{field.InternalError(at, fmt.Errorf("unsupported error type: %w", r.Error))}
	case problem.Type == cel.ErrorTypeRequired:
		return field.ErrorList{field.Required(at, problem.Detail)}
	case problem.Type == cel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(at, expression, problem.Detail)}
	}
	return field.ErrorList{field.InternalError(at, problem)}
}

// deviceClass checks a class; what did not change was checked before.
func deviceClass(spec, old *resourcev1.DeviceClassSpec) field.ErrorList {
	at := field.NewPath("spec")
	errs := deviceSelectors(spec.Selectors, old != nil && validation.Equal(spec.Selectors, old.Selectors), at.Child("selectors"))
	stored := old != nil && validation.Equal(spec.Config, old.Config)
	errs = append(errs, list(spec.Config, resourcev1.DeviceConfigMaxSize, nil, at.Child("config"), func(c *resourcev1.DeviceClassConfiguration, at *field.Path) field.ErrorList {
		return opaque(&c.DeviceConfiguration, stored, at)
	})...)
	return append(errs, extendedResource(spec.ExtendedResourceName, at.Child("extendedResourceName"))...)
}
