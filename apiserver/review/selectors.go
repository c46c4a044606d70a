package review

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/authz"
)

// fieldSelector writes the selector of a review as a list request would have it. What
// this version does not understand is left out, as a wider question, and doubt says so.
func fieldSelector(a *authorizationv1.FieldSelectorAttributes) (text, doubt string) {
	if a == nil {
		return "", ""
	}
	if a.RawSelector != "" {
		if _, err := fields.ParseSelector(a.RawSelector); err != nil {
			return "", ignored("fieldSelector", false)
		}
		return a.RawSelector, ""
	}
	var known fields.Requirements
	for _, r := range a.Requirements {
		op, ok := map[metav1.FieldSelectorOperator]selection.Operator{metav1.FieldSelectorOpIn: selection.Equals, metav1.FieldSelectorOpNotIn: selection.NotEquals}[r.Operator]
		if ok && len(r.Values) == 1 {
			known = append(known, fields.Requirement{Field: r.Key, Operator: op, Value: r.Values[0]})
		}
	}
	if len(known) < len(a.Requirements) {
		doubt = ignored("fieldSelector", len(known) > 0)
	}
	return authz.FieldText(known), doubt
}

func labelSelector(a *authorizationv1.LabelSelectorAttributes) (text, doubt string) {
	if a == nil {
		return "", ""
	}
	if a.RawSelector != "" {
		if _, err := labels.Parse(a.RawSelector); err != nil {
			return "", ignored("labelSelector", false)
		}
		return a.RawSelector, ""
	}
	var known labels.Requirements
	for _, r := range a.Requirements {
		op, ok := map[metav1.LabelSelectorOperator]selection.Operator{
			metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
			metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
		}[r.Operator]
		if !ok {
			continue
		}
		if req, err := labels.NewRequirement(r.Key, op, r.Values); err == nil {
			known = append(known, *req)
		}
	}
	if len(known) < len(a.Requirements) {
		doubt = ignored("labelSelector", len(known) > 0)
	}
	return authz.LabelText(known), doubt
}

func ignored(selector string, partly bool) string {
	if partly {
		return "spec.resourceAttributes." + selector + " partially ignored due to parse error"
	}
	return "spec.resourceAttributes." + selector + " ignored due to parse error"
}

func validateFieldSelector(a *authorizationv1.FieldSelectorAttributes, at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := validateEither(a.RawSelector, len(a.Requirements), at)
	for i, r := range a.Requirements {
		// Newer clients may know operators that this server does not.
		errs = append(errs, validation.ValidateFieldSelectorRequirement(r, validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Child("requirements").Index(i))...)
	}
	return errs
}

func validateLabelSelector(a *authorizationv1.LabelSelectorAttributes, at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := validateEither(a.RawSelector, len(a.Requirements), at)
	for i, r := range a.Requirements {
		errs = append(errs, validation.ValidateLabelSelectorRequirement(r, validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Child("requirements").Index(i))...)
	}
	return errs
}

func validateEither(raw string, requirements int, at *field.Path) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(at.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(at.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", at))}
	}
	return nil
}
