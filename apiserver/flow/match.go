package flow

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// matches reports whether a schema is about a request.
func matches(schema *flowcontrolv1.FlowSchema, u user.Info, i *request.Info) bool {
	for r := range schema.Spec.Rules {
		rule := &schema.Spec.Rules[r]
		if !slices.ContainsFunc(rule.Subjects, func(s flowcontrolv1.Subject) bool { return isSubject(&s, u) }) {
			continue
		}
		if i.IsResource {
			for j := range rule.ResourceRules {
				if aboutResource(&rule.ResourceRules[j], i) {
					return true
				}
			}
			continue
		}
		for j := range rule.NonResourceRules {
			if aboutPath(&rule.NonResourceRules[j], i) {
				return true
			}
		}
	}
	return false
}

func isSubject(s *flowcontrolv1.Subject, u user.Info) bool {
	switch s.Kind {
	case flowcontrolv1.SubjectKindUser:
		return s.User != nil && (s.User.Name == flowcontrolv1.NameAll || s.User.Name == u.GetName())
	case flowcontrolv1.SubjectKindGroup:
		return s.Group != nil && (s.Group.Name == flowcontrolv1.NameAll || slices.Contains(u.GetGroups(), s.Group.Name))
	case flowcontrolv1.SubjectKindServiceAccount:
		if s.ServiceAccount == nil || !strings.HasPrefix(u.GetName(), serviceaccount.ServiceAccountUsernamePrefix) {
			return false
		}
		if s.ServiceAccount.Name != flowcontrolv1.NameAll {
			return serviceaccount.MatchesUsername(s.ServiceAccount.Namespace, s.ServiceAccount.Name, u.GetName())
		}
		return strings.HasPrefix(u.GetName(), serviceaccount.ServiceAccountUsernamePrefix+s.ServiceAccount.Namespace+":")
	}
	return false
}

// has reports whether a list names a value, or all.
func has(list []string, value string) bool {
	return len(list) > 0 && (list[0] == "*" || slices.Contains(list, value))
}

func aboutResource(r *flowcontrolv1.ResourcePolicyRule, i *request.Info) bool {
	if !has(r.Verbs, i.Verb) || !has(r.APIGroups, i.Group) {
		return false
	}
	if !has(r.Resources, i.Resource) || i.Subresource != "" {
		combined := i.Resource
		if i.Subresource != "" {
			combined += "/" + i.Subresource
		}
		if !has(r.Resources, combined) {
			return false
		}
	}
	if i.Namespace == "" {
		return r.ClusterScope
	}
	return has(r.Namespaces, i.Namespace)
}

func aboutPath(r *flowcontrolv1.NonResourcePolicyRule, i *request.Info) bool {
	return has(r.Verbs, i.Verb) && slices.ContainsFunc(r.NonResourceURLs, func(spec string) bool {
		prefix, open := strings.CutSuffix(spec, "*")
		return spec == i.Path || open && strings.HasPrefix(i.Path, prefix)
	})
}
