package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/periplus/periplus/apiserver/validation"
)

var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

func flowSchema(fs *flowcontrolv1.FlowSchema) (errs field.ErrorList) {
	spec, at := &fs.Spec, field.NewPath("spec")
	precedence := at.Child("matchingPrecedence")
	switch n := spec.MatchingPrecedence; {
	case n <= 0:
		errs = append(errs, field.Invalid(precedence, n, "must be a positive value"))
	case n > flowcontrolv1.FlowSchemaMaxMatchingPrecedence:
		errs = append(errs, field.Invalid(precedence, n, fmt.Sprintf("must not be greater than %v", flowcontrolv1.FlowSchemaMaxMatchingPrecedence)))
	case n == 1 && fs.Name != flowcontrolv1.FlowSchemaNameExempt:
		errs = append(errs, field.Invalid(precedence, n, "only the schema named 'exempt' may have matchingPrecedence 1"))
	}
	if d := spec.DistinguisherMethod; d != nil && d.Type != flowcontrolv1.FlowDistinguisherMethodByNamespaceType && d.Type != flowcontrolv1.FlowDistinguisherMethodByUserType {
		errs = append(errs, field.NotSupported(at.Child("distinguisherMethod", "type"), d,
			[]flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}))
	}
	if name, p := spec.PriorityLevelConfiguration.Name, at.Child("priorityLevelConfiguration", "name"); name == "" {
		errs = append(errs, field.Required(p, "must reference a priority level"))
	} else {
		errs = append(errs, validation.ObjectName(name, apivalidation.NameIsDNSSubdomain, p)...)
	}
	for i := range spec.Rules {
		errs = append(errs, rule(&spec.Rules[i], at.Child("rules").Index(i))...)
	}
	for _, m := range bootstrap.MandatoryFlowSchemas {
		if m.Name == fs.Name && !validation.Equal(m.Spec, *spec) {
			errs = append(errs, field.Invalid(at, *spec, fmt.Sprintf("spec of '%s' must equal the fixed value", fs.Name)))
		}
	}
	return append(errs, flowSchemaStatus(fs)...)
}

func flowSchemaStatus(fs *flowcontrolv1.FlowSchema) field.ErrorList {
	return conditions(len(fs.Status.Conditions), func(i int) string { return string(fs.Status.Conditions[i].Type) })
}

// conditions checks the types of n conditions.
func conditions(n int, kind func(int) string) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i := range n {
		at := field.NewPath("status", "conditions").Index(i).Child("type")
		t := kind(i)
		if seen[t] {
			errs = append(errs, field.Duplicate(at, t))
		}
		seen[t] = true
		if t == "" {
			errs = append(errs, field.Required(at, ""))
		}
	}
	return errs
}

func rule(r *flowcontrolv1.PolicyRulesWithSubjects, at *field.Path) (errs field.ErrorList) {
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(at.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		errs = append(errs, subject(&r.Subjects[i], at.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules)+len(r.NonResourceRules) == 0 {
		errs = append(errs, field.Required(at, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range r.ResourceRules {
		errs = append(errs, resourceRule(&r.ResourceRules[i], at.Child("resourceRules").Index(i))...)
	}
	for i := range r.NonResourceRules {
		n, p := &r.NonResourceRules[i], at.Child("nonResourceRules").Index(i)
		errs = append(errs, verbList(n.Verbs, p.Child("verbs"))...)
		urls := p.Child("nonResourceURLs")
		switch {
		case len(n.NonResourceURLs) == 0:
			errs = append(errs, field.Required(urls, "nonResourceURLs must contain at least one value"))
		case slices.Contains(n.NonResourceURLs, flowcontrolv1.NonResourceAll):
			errs = append(errs, alone(n.NonResourceURLs, "non-resource URLs", urls)...)
		default:
			for j, url := range n.NonResourceURLs {
				if bad := urlPath(url); bad != "" {
					errs = append(errs, field.Invalid(urls.Index(j), url, bad))
				}
			}
		}
	}
	return errs
}

// alone refuses values besides the star that stands for all of them.
func alone(list []string, what string, at *field.Path) field.ErrorList {
	if len(list) > 1 && slices.Contains(list, "*") {
		return field.ErrorList{field.Invalid(at, list, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

func verbList(list []string, at *field.Path) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(at, "verbs must contain at least one value")}
	case slices.Contains(list, flowcontrolv1.VerbAll):
		return alone(list, "verbs", at)
	case slices.ContainsFunc(list, func(v string) bool { return !slices.Contains(verbs, v) }):
		return field.ErrorList{field.NotSupported(at, list, verbs)}
	}
	return nil
}

func urlPath(path string) string {
	switch {
	case path == "":
		return "must not be empty"
	case path == "/":
		return ""
	case !strings.HasPrefix(path, "/"):
		return "must start with slash"
	case strings.Contains(path, " "):
		return "must not contain white-space"
	case strings.Contains(path, "//"):
		return "must not contain double slash"
	case strings.Contains(strings.TrimSuffix(path, "/*"), "*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

func resourceRule(r *flowcontrolv1.ResourcePolicyRule, at *field.Path) field.ErrorList {
	errs := verbList(r.Verbs, at.Child("verbs"))
	for _, l := range []struct {
		list               []string
		name, what, demand string
	}{
		{r.APIGroups, "apiGroups", "api groups", "resource rules must supply at least one api group"},
		{r.Resources, "resources", "resources", "resource rules must supply at least one resource"},
	} {
		if len(l.list) == 0 {
			errs = append(errs, field.Required(at.Child(l.name), l.demand))
		}
		errs = append(errs, alone(l.list, l.what, at.Child(l.name))...)
	}
	namespaces := at.Child("namespaces")
	if len(r.Namespaces) == 0 && !r.ClusterScope {
		return append(errs, field.Required(namespaces, "resource rules that are not cluster scoped must supply at least one namespace"))
	}
	if slices.Contains(r.Namespaces, flowcontrolv1.NamespaceEvery) {
		return append(errs, alone(r.Namespaces, "namespaces", namespaces)...)
	}
	for i, name := range r.Namespaces {
		for _, m := range apivalidation.ValidateNamespaceName(name, false) {
			errs = append(errs, field.Invalid(namespaces.Index(i), name, "each member of this list must be '*' or a DNS-1123 label; "+m))
		}
	}
	return errs
}

// subject checks the union of whom a rule is for.
func subject(s *flowcontrolv1.Subject, at *field.Path) (errs field.ErrorList) {
	members := []struct {
		kind  flowcontrolv1.SubjectKind
		field string
		given bool
		check func(at *field.Path) field.ErrorList
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil, func(at *field.Path) field.ErrorList { return account(s.ServiceAccount, at) }},
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil, func(at *field.Path) field.ErrorList { return named(s.User.Name, at) }},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil, func(at *field.Path) field.ErrorList { return named(s.Group.Name, at) }},
	}
	if !slices.Contains([]flowcontrolv1.SubjectKind{members[0].kind, members[1].kind, members[2].kind}, s.Kind) {
		return field.ErrorList{field.NotSupported(at.Child("kind"), s.Kind,
			[]flowcontrolv1.SubjectKind{flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser})}
	}
	for _, m := range members {
		switch p := at.Child(m.field); {
		case m.kind == s.Kind && !m.given:
			errs = append(errs, field.Required(p, fmt.Sprintf("%s is required when subject kind is '%s'", m.field, m.kind)))
		case m.kind == s.Kind:
			errs = append(errs, m.check(p)...)
		case m.given:
			errs = append(errs, field.Forbidden(p, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", m.field, m.kind)))
		}
	}
	return errs
}

func named(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "")}
	}
	return nil
}

func account(a *flowcontrolv1.ServiceAccountSubject, at *field.Path) field.ErrorList {
	errs := named(a.Name, at)
	if a.Name != "" && a.Name != flowcontrolv1.NameAll {
		errs = append(errs, validation.ObjectName(a.Name, apivalidation.ValidateServiceAccountName, at.Child("name"))...)
	}
	if a.Namespace == "" {
		return append(errs, field.Required(at.Child("namespace"), "must specify namespace for service account"))
	}
	return append(errs, validation.ObjectName(a.Namespace, apivalidation.ValidateNamespaceName, at.Child("namespace"))...)
}
