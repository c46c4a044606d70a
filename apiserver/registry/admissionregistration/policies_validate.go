package admissionregistration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"
)

func validatePolicy(_ context.Context, p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	at := field.NewPath("spec")
	errs := policyHead(p.Spec.FailurePolicy, p.Spec.ParamKind, p.Spec.MatchConstraints, at)
	errs = append(errs, validateConditions(at.Child("matchConditions"), p.Spec.MatchConditions)...)
	c := newExpressions(p.Spec.ParamKind != nil, len(p.Spec.Variables) > 0)
	c.variables(p.Spec.Variables, at.Child("variables"))
	if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
		const none = "validations or auditAnnotations must contain at least one item"
		c.add(field.Required(at.Child("validations"), none), field.Required(at.Child("auditAnnotations"), none))
	}
	for i := range p.Spec.Validations {
		c.validation(&p.Spec.Validations[i], at.Child("validations").Index(i))
	}
	c.auditAnnotations(p.Name, p.Spec.AuditAnnotations, at.Child("auditAnnotations"))
	return append(errs, c.errs...)
}

func validateMutatingPolicy(_ context.Context, p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
	at := field.NewPath("spec")
	errs := policyHead(p.Spec.FailurePolicy, p.Spec.ParamKind, p.Spec.MatchConstraints, at)
	errs = append(errs, mutableOnly(p.Spec.MatchConstraints, at.Child("matchConstraints"))...)
	errs = append(errs, validateConditions(at.Child("matchConditions"), p.Spec.MatchConditions)...)
	c := newExpressions(p.Spec.ParamKind != nil, len(p.Spec.Variables) > 0)
	c.variables(p.Spec.Variables, at.Child("variables"))
	if len(p.Spec.Mutations) == 0 {
		c.add(field.Required(at.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range p.Spec.Mutations {
		c.mutation(&p.Spec.Mutations[i], at.Child("mutations").Index(i))
	}
	switch r, here := p.Spec.ReinvocationPolicy, at.Child("reinvocationPolicy"); r {
	case admissionv1.NeverReinvocationPolicy, admissionv1.IfNeededReinvocationPolicy:
	case "":
		c.add(field.Required(here, ""))
	default:
		c.add(field.NotSupported(here, r, []admissionv1.ReinvocationPolicyType{admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy}))
	}
	return append(errs, c.errs...)
}

// policyHead checks what both sorts of policies say first.
func policyHead(failure *admissionv1.FailurePolicyType, k *admissionv1.ParamKind, m *admissionv1.MatchResources, at *field.Path) (errs field.ErrorList) {
	if here := at.Child("failurePolicy"); failure == nil {
		errs = append(errs, field.Required(here, ""))
	} else if *failure != admissionv1.Fail && *failure != admissionv1.Ignore {
		errs = append(errs, field.NotSupported(here, *failure, []admissionv1.FailurePolicyType{admissionv1.Fail, admissionv1.Ignore}))
	}
	if k != nil {
		errs = append(errs, validateParamKind(at.Child("paramKind"), k)...)
	}
	if m == nil {
		return append(errs, field.Required(at.Child("matchConstraints"), ""))
	}
	errs = append(errs, validateMatch(at.Child("matchConstraints"), m)...)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("matchConstraints", "resourceRules"), ""))
	}
	return errs
}

// mutableOnly refuses operations whose object cannot be changed.
func mutableOnly(m *admissionv1.MatchResources, at *field.Path) (errs field.ErrorList) {
	if m == nil {
		return nil
	}
	mutable := []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Update}
	for _, r := range m.ResourceRules {
		for _, op := range r.Operations {
			if !slices.Contains(mutable, op) {
				errs = append(errs, field.NotSupported(at.Child("resourceRules", "operations"), op, mutable))
			}
		}
	}
	return errs
}

func validateParamKind(at *field.Path, k *admissionv1.ParamKind) (errs field.ErrorList) {
	version := at.Child("apiVersion")
	group, v, err := splitVersion(k.APIVersion)
	switch {
	case k.APIVersion == "":
		errs = append(errs, field.Required(version, ""))
	case err != nil:
		errs = append(errs, field.Invalid(version, k.APIVersion, err.Error()))
	default:
		if bad := utilvalidation.IsDNS1123Subdomain(group); group != "" && len(bad) > 0 {
			errs = append(errs, field.Invalid(version, group, strings.Join(bad, ",")))
		}
		if v == "" {
			errs = append(errs, field.Invalid(version, k.APIVersion, "version must be specified"))
		} else if bad := utilvalidation.IsDNS1035Label(v); len(bad) > 0 {
			errs = append(errs, field.Invalid(version, v, strings.Join(bad, ",")))
		}
	}
	if here := at.Child("kind"); k.Kind == "" {
		errs = append(errs, field.Required(here, ""))
	} else if bad := utilvalidation.IsDNS1035Label(strings.ToLower(k.Kind)); len(bad) > 0 {
		errs = append(errs, field.Invalid(here, k.Kind, "may have mixed case, but should otherwise match: "+strings.Join(bad, ",")))
	}
	return errs
}

func splitVersion(s string) (group, version string, err error) {
	switch strings.Count(s, "/") {
	case 0:
		return "", s, nil
	case 1:
		group, version, _ = strings.Cut(s, "/")
		return group, version, nil
	}
	return "", "", fmt.Errorf("unexpected GroupVersion string: %v", s)
}

func validateMatch(at *field.Path, m *admissionv1.MatchResources) (errs field.ErrorList) {
	if here := at.Child("matchPolicy"); m.MatchPolicy == nil {
		errs = append(errs, field.Required(here, ""))
	} else if p := *m.MatchPolicy; p != admissionv1.Exact && p != admissionv1.Equivalent {
		errs = append(errs, field.NotSupported(here, p, []admissionv1.MatchPolicyType{admissionv1.Equivalent, admissionv1.Exact}))
	}
	for _, s := range []struct {
		name     string
		selector *metav1.LabelSelector
	}{{"namespaceSelector", m.NamespaceSelector}, {"objectSelector", m.ObjectSelector}} {
		if s.selector == nil {
			errs = append(errs, field.Required(at.Child(s.name), ""))
		} else {
			errs = append(errs, metav1validation.ValidateLabelSelector(s.selector, metav1validation.LabelSelectorValidationOptions{}, at.Child(s.name))...)
		}
	}
	for i := range m.ResourceRules {
		errs = append(errs, namedRule(&m.ResourceRules[i], at.Child("resourceRules").Index(i))...)
	}
	for i := range m.ExcludeResourceRules {
		errs = append(errs, namedRule(&m.ExcludeResourceRules[i], at.Child("excludeResourceRules").Index(i))...)
	}
	return errs
}

func namedRule(r *admissionv1.NamedRuleWithOperations, at *field.Path) (errs field.ErrorList) {
	for i, name := range r.ResourceNames {
		here := at.Child("resourceNames").Index(i)
		for _, m := range content.IsPathSegmentName(name) {
			errs = append(errs, field.Invalid(here, name, m))
		}
		if slices.Contains(r.ResourceNames[:i], name) {
			errs = append(errs, field.Duplicate(here, name))
		}
	}
	return append(errs, validateRule(at, &r.RuleWithOperations)...)
}

// policyStatus checks what the type checker says of a policy.
func policyStatus(s *admissionv1.ValidatingAdmissionPolicyStatus) (errs field.ErrorList) {
	at := field.NewPath("status")
	if s.TypeChecking != nil {
		for i, w := range s.TypeChecking.ExpressionWarnings {
			here := at.Child("typeChecking", "expressionWarnings").Index(i)
			if w.Warning == "" {
				errs = append(errs, field.Required(here.Child("warning"), ""))
			}
			ref := strings.TrimSpace(w.FieldRef)
			if ref == "" {
				errs = append(errs, field.Required(here.Child("fieldRef"), ""))
			} else if err := jsonpath.New("spec").Parse("{" + ref + "}"); err != nil {
				errs = append(errs, field.Invalid(here.Child("fieldRef"), ref, fmt.Sprintf("invalid JSONPath: %v", err)))
			}
		}
	}
	return append(errs, metav1validation.ValidateConditions(s.Conditions, at.Child("conditions"))...)
}

// errNoCompiler is what is reported when expressions cannot be compiled at all.
var errNoCompiler = errors.New("the compiler of expressions could not be made")
