package admissionregistration

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

func validatePolicyBinding(_ context.Context, b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	at := field.NewPath("spec")
	errs := bindingHead(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources, at)
	return append(errs, validationActions(b.Spec.ValidationActions, at.Child("validationActions"))...)
}

func validateMutatingBinding(_ context.Context, b *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
	at := field.NewPath("spec")
	errs := bindingHead(b.Spec.PolicyName, b.Spec.ParamRef, b.Spec.MatchResources, at)
	return append(errs, mutableOnly(b.Spec.MatchResources, at.Child("matchResources"))...)
}

func bindingHead(policy string, ref *admissionv1.ParamRef, m *admissionv1.MatchResources, at *field.Path) (errs field.ErrorList) {
	if here := at.Child("policyName"); policy == "" {
		errs = append(errs, field.Required(here, ""))
	} else {
		errs = append(errs, validation.ObjectName(policy, apivalidation.NameIsDNSSubdomain, here)...)
	}
	if ref != nil {
		errs = append(errs, paramRef(ref, at.Child("paramRef"))...)
	}
	if m != nil {
		errs = append(errs, validateMatch(at.Child("matchResources"), m)...)
	}
	return errs
}

func paramRef(r *admissionv1.ParamRef, at *field.Path) (errs field.ErrorList) {
	const exclusive = "name and selector are mutually exclusive"
	name, selector := at.Child("name"), at.Child("selector")
	if r.Name != "" {
		errs = append(errs, validation.PathSegment(r.Name, name)...)
	}
	if r.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(r.Selector, metav1validation.LabelSelectorValidationOptions{}, selector)...)
	}
	switch {
	case r.Name != "" && r.Selector != nil:
		errs = append(errs, field.Forbidden(name, exclusive), field.Forbidden(selector, exclusive))
	case r.Name == "" && r.Selector == nil:
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	}
	switch action, here := r.ParameterNotFoundAction, at.Child("parameterNotFoundAction"); {
	case action == nil || *action == "":
		errs = append(errs, field.Required(here, ""))
	case *action != admissionv1.DenyAction && *action != admissionv1.AllowAction:
		errs = append(errs, field.NotSupported(here, action, []admissionv1.ParameterNotFoundActionType{admissionv1.DenyAction, admissionv1.AllowAction}))
	}
	return errs
}

func validationActions(list []admissionv1.ValidationAction, at *field.Path) (errs field.ErrorList) {
	if len(list) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	known := []admissionv1.ValidationAction{admissionv1.Audit, admissionv1.Deny, admissionv1.Warn}
	for i, a := range list {
		if !slices.Contains(known, a) {
			errs = append(errs, field.NotSupported(at.Index(i), a, known))
		}
		if slices.Contains(list[:i], a) {
			errs = append(errs, field.Duplicate(at.Index(i), a))
		}
	}
	if slices.Contains(list, admissionv1.Deny) && slices.Contains(list, admissionv1.Warn) {
		errs = append(errs, field.Invalid(at, list, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}
