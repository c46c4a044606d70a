package admissionregistration

import (
	"context"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/webhook"
)

// A hook is what mutating and validating webhooks have in common.
type hook struct {
	name       string
	client     *admissionv1.WebhookClientConfig
	rules      []admissionv1.RuleWithOperations
	failure    *admissionv1.FailurePolicyType
	match      *admissionv1.MatchPolicyType
	sides      *admissionv1.SideEffectClass
	timeout    *int32
	versions   []string
	conditions []admissionv1.MatchCondition
	selectors  func(at *field.Path) field.ErrorList
}

func validateMutating(_ context.Context, c *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range c.Webhooks {
		w, at := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateHook(at, names, hook{w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, w.MatchConditions, func(at *field.Path) field.ErrorList {
				return append(metav1validation.ValidateLabelSelector(w.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("namespaceSelector")),
					metav1validation.ValidateLabelSelector(w.ObjectSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("objectSelector"))...)
			}})...)
		if p := w.ReinvocationPolicy; p != nil && *p != admissionv1.NeverReinvocationPolicy && *p != admissionv1.IfNeededReinvocationPolicy {
			errs = append(errs, field.NotSupported(at.Child("reinvocationPolicy"), *p, []string{string(admissionv1.IfNeededReinvocationPolicy), string(admissionv1.NeverReinvocationPolicy)}))
		}
	}
	return errs
}

func validateValidating(_ context.Context, c *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range c.Webhooks {
		w, at := &c.Webhooks[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateHook(at, names, hook{w.Name, &w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.AdmissionReviewVersions, w.MatchConditions, func(at *field.Path) field.ErrorList {
				return append(metav1validation.ValidateLabelSelector(w.NamespaceSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("namespaceSelector")),
					metav1validation.ValidateLabelSelector(w.ObjectSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("objectSelector"))...)
			}})...)
	}
	return errs
}

func validateHook(at *field.Path, names sets.Set[string], h hook) field.ErrorList {
	errs := validation.IsFullyQualifiedName(at.Child("name"), h.name)
	if h.name != "" && names.Has(h.name) {
		errs = append(errs, field.Duplicate(at.Child("name"), h.name))
	}
	names.Insert(h.name)
	errs = append(errs, validateReviews(at.Child("admissionReviewVersions"), h.versions)...)
	for i := range h.rules {
		errs = append(errs, validateRule(at.Child("rules").Index(i), &h.rules[i])...)
	}
	if h.failure != nil && *h.failure != admissionv1.Fail && *h.failure != admissionv1.Ignore {
		errs = append(errs, field.NotSupported(at.Child("failurePolicy"), *h.failure, []string{"Fail", "Ignore"}))
	}
	if h.match != nil && *h.match != admissionv1.Exact && *h.match != admissionv1.Equivalent {
		errs = append(errs, field.NotSupported(at.Child("matchPolicy"), *h.match, []string{"Equivalent", "Exact"}))
	}
	switch {
	case h.sides == nil:
		errs = append(errs, field.Required(at.Child("sideEffects"), "must specify one of None, NoneOnDryRun"))
	case *h.sides != admissionv1.SideEffectClassNone && *h.sides != admissionv1.SideEffectClassNoneOnDryRun:
		errs = append(errs, field.NotSupported(at.Child("sideEffects"), *h.sides, []string{"None", "NoneOnDryRun"}))
	}
	if h.timeout != nil && (*h.timeout < 1 || *h.timeout > 30) {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), *h.timeout, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, h.selectors(at)...)
	errs = append(errs, validateClient(at.Child("clientConfig"), h.client)...)
	return append(errs, validateConditions(at.Child("matchConditions"), h.conditions)...)
}

func validateReviews(at *field.Path, versions []string) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "must specify one of v1, v1beta1")}
	}
	var errs field.ErrorList
	seen, known := sets.New[string](), false
	for i, v := range versions {
		if seen.Has(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, "duplicate version"))
			continue
		}
		seen.Insert(v)
		for _, text := range validation.IsDNS1035Label(v) {
			errs = append(errs, field.Invalid(at.Index(i), v, text))
		}
		known = known || v == "v1" || v == "v1beta1"
	}
	if !known {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

func validateClient(at *field.Path, c *admissionv1.WebhookClientConfig) field.ErrorList {
	var errs field.ErrorList
	switch {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(at, "exactly one of url or service is required"))
	case c.URL != nil:
		errs = append(errs, webhook.ValidateWebhookURL(at.Child("url"), *c.URL, true)...)
	default:
		port := int32(443)
		if c.Service.Port != nil {
			port = *c.Service.Port
		}
		errs = append(errs, webhook.ValidateWebhookService(at.Child("service"), c.Service.Name, c.Service.Namespace, c.Service.Path, port)...)
	}
	return errs
}

func validateRule(at *field.Path, r *admissionv1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(at.Child("operations"), ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(at.Child("operations"), r.Operations, "if '*' is present, must not specify other operations"))
	}
	known := []admissionv1.OperationType{admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update}
	for i, op := range r.Operations {
		if !slices.Contains(known, op) {
			errs = append(errs, field.NotSupported(at.Child("operations").Index(i), op, known))
		}
	}
	errs = append(errs, validateNames(at.Child("apiGroups"), r.APIGroups, "if '*' is present, must not specify other API groups", false)...)
	errs = append(errs, validateNames(at.Child("apiVersions"), r.APIVersions, "if '*' is present, must not specify other API versions", true)...)
	errs = append(errs, validateResources(at.Child("resources"), r.Resources)...)
	if s := r.Scope; s != nil && *s != admissionv1.AllScopes && *s != admissionv1.ClusterScope && *s != admissionv1.NamespacedScope {
		errs = append(errs, field.NotSupported(at.Child("scope"), *s, []string{"*", "Cluster", "Namespaced"}))
	}
	return errs
}

// validateNames checks a list of groups or versions: there are some, and "*" stands alone.
func validateNames(at *field.Path, list []string, alone string, filled bool) field.ErrorList {
	var errs field.ErrorList
	if len(list) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		errs = append(errs, field.Invalid(at, list, alone))
	}
	for i, name := range list {
		if filled && name == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
		}
	}
	return errs
}

func validateResources(at *field.Path, list []string) field.ErrorList {
	var errs field.ErrorList
	if len(list) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	everySub, everyResource := sets.New[string](), sets.New[string]() // of "x/*", of "*/y"
	for i, path := range list {
		if path == "" {
			errs = append(errs, field.Required(at.Index(i), ""))
			continue
		}
		if path == "*/*" && len(list) > 1 {
			errs = append(errs, field.Invalid(at, list, "if '*/*' is present, must not specify other resources"))
		}
		r, s, split := strings.Cut(path, "/")
		if !split {
			continue
		}
		if everySub.Has(r) {
			errs = append(errs, field.Invalid(at.Index(i), path, "if '"+r+"/*' is present, must not specify "+path))
		}
		if everyResource.Has(s) {
			errs = append(errs, field.Invalid(at.Index(i), path, "if '*/"+s+"' is present, must not specify "+path))
		}
		if s == "*" {
			everySub.Insert(r)
		}
		if r == "*" {
			everyResource.Insert(s)
		}
	}
	// As upstream, of the resources without a subresource the last one counts.
	last := ""
	for _, path := range list {
		if !strings.Contains(path, "/") && path != "" {
			last = path
		}
	}
	if slices.Contains(list, "*") && last != "*" {
		errs = append(errs, field.Invalid(at, list, "if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}

// compiler is made when the first condition is checked.
var compiler = sync.OnceValue(func() cel.Compiler {
	return cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
})

func validateConditions(at *field.Path, list []admissionv1.MatchCondition) field.ErrorList {
	var errs field.ErrorList
	if len(list) > 64 {
		errs = append(errs, field.TooMany(at, len(list), 64))
	}
	names := sets.New[string]()
	for i := range list {
		c, here := matchconditions.MatchCondition(list[i]), at.Index(i)
		if strings.TrimSpace(c.Expression) == "" {
			errs = append(errs, field.Required(here.Child("expression"), ""))
		} else if result := compiler().CompileCELExpression(&c, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions); result.Error != nil {
			errs = append(errs, field.Invalid(here.Child("expression"), c.Expression, result.Error.Detail))
		}
		if c.Name == "" {
			errs = append(errs, field.Required(here.Child("name"), ""))
		} else {
			if names.Has(c.Name) {
				errs = append(errs, field.Duplicate(here.Child("name"), c.Name))
			}
			for _, text := range validation.IsQualifiedName(c.Name) {
				errs = append(errs, field.Invalid(here.Child("name"), c.Name, text))
			}
		}
		names.Insert(c.Name)
	}
	return errs
}
