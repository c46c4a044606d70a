package admissionregistration

import (
	"context"
	"regexp"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// typed is an expression in CEL with the type that it must have.
type typed struct {
	name, text string
	kind       *celgo.Type
}

func (e *typed) GetName() string            { return e.name }
func (e *typed) GetExpression() string      { return e.text }
func (e *typed) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.kind} }

// identifier is what a variable may be called.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

func validatePolicy(_ context.Context, p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if k := p.Spec.ParamKind; k != nil {
		errs = append(errs, validateParamKind(at.Child("paramKind"), k)...)
	}
	if m := p.Spec.MatchConstraints; m == nil {
		errs = append(errs, field.Required(at.Child("matchConstraints"), ""))
	} else {
		errs = append(errs, validateMatch(at.Child("matchConstraints"), m)...)
		if len(m.ResourceRules) == 0 {
			errs = append(errs, field.Required(at.Child("matchConstraints", "resourceRules"), ""))
		}
	}
	if f := p.Spec.FailurePolicy; f != nil && *f != admissionv1.Fail && *f != admissionv1.Ignore {
		errs = append(errs, field.NotSupported(at.Child("failurePolicy"), *f, []string{"Fail", "Ignore"}))
	}
	if len(p.Spec.Validations) == 0 && len(p.Spec.AuditAnnotations) == 0 {
		errs = append(errs, field.Required(at.Child("validations"), "validations or auditAnnotations must be non-empty"),
			field.Required(at.Child("auditAnnotations"), "validations or auditAnnotations must be non-empty"))
	}
	errs = append(errs, validateConditions(at.Child("matchConditions"), p.Spec.MatchConditions)...)
	return append(errs, validateExpressions(at, p)...)
}

// validateExpressions compiles variables and what uses them.
func validateExpressions(at *field.Path, p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
	if len(p.Spec.Variables) == 0 && len(p.Spec.Validations) == 0 && len(p.Spec.AuditAnnotations) == 0 {
		return nil
	}
	c, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	declared := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	var errs field.ErrorList
	names := sets.New[string]()
	for i, v := range p.Spec.Variables {
		here := at.Child("variables").Index(i)
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(here.Child("name"), "name is not specified"))
		case !identifier.MatchString(v.Name):
			errs = append(errs, field.Invalid(here.Child("name"), v.Name, "name is not a valid CEL identifier"))
		case names.Has(v.Name):
			errs = append(errs, field.Duplicate(here.Child("name"), v.Name))
		}
		names.Insert(v.Name)
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(here.Child("expression"), "expression is not specified"))
			continue
		}
		if r := c.CompileAndStoreVariable(&typed{v.Name, v.Expression, celgo.AnyType}, declared, environment.NewExpressions); r.Error != nil {
			errs = append(errs, field.Invalid(here.Child("expression"), v.Expression, r.Error.Detail))
		}
	}
	check := func(here *field.Path, text string, kind *celgo.Type, declared cel.OptionalVariableDeclarations) {
		if strings.TrimSpace(text) == "" {
			errs = append(errs, field.Required(here, "expression is not specified"))
		} else if r := c.CompileCELExpression(&typed{text: text, kind: kind}, declared, environment.NewExpressions); r.Error != nil {
			errs = append(errs, field.Invalid(here, text, r.Error.Detail))
		}
	}
	for i, v := range p.Spec.Validations {
		here := at.Child("validations").Index(i)
		check(here.Child("expression"), v.Expression, celgo.BoolType, declared)
		if strings.Contains(v.Expression, "\n") && v.Message == "" {
			errs = append(errs, field.Required(here.Child("message"), "message must be specified if expression contains line breaks"))
		}
		if strings.Contains(v.Message, "\n") {
			errs = append(errs, field.Invalid(here.Child("message"), v.Message, "message must not contain line breaks"))
		}
		if v.MessageExpression != "" {
			plain := declared
			plain.HasAuthorizer = false
			check(here.Child("messageExpression"), v.MessageExpression, celgo.StringType, plain)
		}
		known := []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonUnauthorized}
		if v.Reason != nil && !slices.Contains(known, *v.Reason) {
			errs = append(errs, field.NotSupported(here.Child("reason"), *v.Reason, known))
		}
	}
	return errs
}

func validateParamKind(at *field.Path, k *admissionv1.ParamKind) field.ErrorList {
	var errs field.ErrorList
	if k.APIVersion == "" {
		errs = append(errs, field.Required(at.Child("apiVersion"), ""))
	} else if _, err := schema.ParseGroupVersion(k.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), k.APIVersion, err.Error()))
	}
	if k.Kind == "" {
		errs = append(errs, field.Required(at.Child("kind"), ""))
	}
	return errs
}

func validateMatch(at *field.Path, m *admissionv1.MatchResources) field.ErrorList {
	var errs field.ErrorList
	if p := m.MatchPolicy; p != nil && *p != admissionv1.Exact && *p != admissionv1.Equivalent {
		errs = append(errs, field.NotSupported(at.Child("matchPolicy"), *p, []string{"Equivalent", "Exact"}))
	}
	options := metav1validation.LabelSelectorValidationOptions{}
	errs = append(errs, metav1validation.ValidateLabelSelector(m.NamespaceSelector, options, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(m.ObjectSelector, options, at.Child("objectSelector"))...)
	for name, list := range map[string][]admissionv1.NamedRuleWithOperations{"resourceRules": m.ResourceRules, "excludeResourceRules": m.ExcludeResourceRules} {
		for i := range list {
			errs = append(errs, validateRule(at.Child(name).Index(i), &list[i].RuleWithOperations)...)
		}
	}
	return errs
}

func validatePolicyBinding(_ context.Context, b *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	if b.Spec.PolicyName == "" {
		errs = append(errs, field.Required(at.Child("policyName"), ""))
	}
	if r := b.Spec.ParamRef; r != nil {
		switch {
		case r.Name != "" && r.Selector != nil:
			errs = append(errs, field.Forbidden(at.Child("paramRef", "name"), "name and selector are mutually exclusive"))
		case r.Name == "" && r.Selector == nil:
			errs = append(errs, field.Required(at.Child("paramRef"), "one of name or selector must be specified"))
		}
		known := []admissionv1.ParameterNotFoundActionType{admissionv1.AllowAction, admissionv1.DenyAction}
		if r.ParameterNotFoundAction == nil {
			errs = append(errs, field.Required(at.Child("paramRef", "parameterNotFoundAction"), ""))
		} else if !slices.Contains(known, *r.ParameterNotFoundAction) {
			errs = append(errs, field.NotSupported(at.Child("paramRef", "parameterNotFoundAction"), *r.ParameterNotFoundAction, known))
		}
	}
	if b.Spec.MatchResources != nil {
		errs = append(errs, validateMatch(at.Child("matchResources"), b.Spec.MatchResources)...)
	}
	actions := at.Child("validationActions")
	if len(b.Spec.ValidationActions) == 0 {
		errs = append(errs, field.Required(actions, "at least one validation action is required"))
	}
	known := []admissionv1.ValidationAction{admissionv1.Audit, admissionv1.Deny, admissionv1.Warn}
	seen := sets.New[admissionv1.ValidationAction]()
	for i, a := range b.Spec.ValidationActions {
		switch {
		case !slices.Contains(known, a):
			errs = append(errs, field.NotSupported(actions.Index(i), a, known))
		case seen.Has(a):
			errs = append(errs, field.Duplicate(actions.Index(i), a))
		}
		seen.Insert(a)
	}
	if seen.Has(admissionv1.Deny) && seen.Has(admissionv1.Warn) {
		errs = append(errs, field.Invalid(actions, b.Spec.ValidationActions, "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}
