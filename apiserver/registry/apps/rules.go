package apps

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

type podTemplate = corev1.PodTemplateSpec

var templatePath = field.NewPath("spec", "template")

// oldTemplate returns the template of the old object, nil on create.
func oldTemplate(update bool, of func() *podTemplate) *podTemplate {
	if !update {
		return nil
	}
	return of()
}

// selectorAndTemplate checks the selector of a workload and that it selects the
// pods of its template. kind and empty are for messages.
func selectorAndTemplate(s *metav1.LabelSelector, template, old *podTemplate, kind, empty string, at *field.Path) field.ErrorList {
	errs := selectorRules(s, empty, at.Child("selector"))
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return append(errs, field.Invalid(at.Child("selector"), s, "invalid label selector"))
	}
	return append(errs, validation.ReplicatedTemplate(template, old, selector, kind, at.Child("template"))...)
}

func selectorRules(s *metav1.LabelSelector, empty string, at *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(at, s, empty))
	}
	return errs
}

// selectorText returns a selector as it is written in /scale.
func selectorText(s *metav1.LabelSelector) (string, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

// A number is a count with the name of its field; nil is not checked.
type number struct {
	name  string
	value *int32
}

func nonnegative(at *field.Path, numbers ...number) field.ErrorList {
	var errs field.ErrorList
	for _, n := range numbers {
		if n.value != nil {
			errs = append(errs, validation.Nonnegative(int64(*n.value), at.Child(n.name))...)
		}
	}
	return errs
}

func notAbove(at *field.Path, most int32, detail string, numbers ...number) field.ErrorList {
	var errs field.ErrorList
	for _, n := range numbers {
		if *n.value > most {
			errs = append(errs, field.Invalid(at.Child(n.name), *n.value, detail))
		}
	}
	return errs
}

func notDecremented(now, old *int32, at *field.Path) field.ErrorList {
	if old == nil || now != nil && *now >= *old {
		return nil
	}
	value := int32(0)
	if now != nil {
		value = *now
	}
	return field.ErrorList{field.Invalid(at, value, "cannot be decremented")}
}

func setInt(p **int32, value int32) {
	if *p == nil {
		*p = &value
	}
}

func setIntOrString(p **intstr.IntOrString, value intstr.IntOrString) {
	if *p == nil {
		*p = &value
	}
}
