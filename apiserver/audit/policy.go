package audit

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"

	"github.com/periplus/periplus/apiserver/request"
)

// A Policy says what of which request is logged.
type Policy struct{ rules *auditinternal.Policy }

// A decision is what the policy wants of one request.
type decision struct {
	level   auditinternal.Level
	omit    []auditinternal.Stage
	noOwner bool // managed fields are left out of objects
}

// ReadPolicy reads a policy file.
func ReadPolicy(path string) (*Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	p, err := ParsePolicy(data)
	if err != nil {
		return nil, fmt.Errorf("audit policy %s: %w", path, err)
	}
	return p, nil
}

// ParsePolicy reads a policy in YAML or JSON, strictly.
func ParsePolicy(data []byte) (*Policy, error) {
	scheme := runtime.NewScheme()
	if err := auditv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := auditinternal.AddToScheme(scheme); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	p := &auditinternal.Policy{}
	if _, _, err := codecs.UniversalDecoder(auditinternal.SchemeGroupVersion).Decode(data, nil, p); err != nil {
		return nil, err
	}
	if errs := validation.ValidatePolicy(p); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	if len(p.Rules) == 0 {
		return nil, fmt.Errorf("it has no rules")
	}
	return &Policy{p}, nil
}

// decide returns what the first rule that matches wants; nothing if none does.
func (p *Policy) decide(s *request.State) decision {
	for i := range p.rules.Rules {
		rule := &p.rules.Rules[i]
		if !matches(rule, s) {
			continue
		}
		d := decision{level: rule.Level, noOwner: p.rules.OmitManagedFields}
		if rule.OmitManagedFields != nil {
			d.noOwner = *rule.OmitManagedFields
		}
		switch {
		case len(rule.OmitStages) == 0:
			d.omit = p.rules.OmitStages
		case len(p.rules.OmitStages) == 0:
			d.omit = rule.OmitStages
		default:
			d.omit = slices.Concat(p.rules.OmitStages, rule.OmitStages)
		}
		return d
	}
	return decision{level: auditinternal.LevelNone}
}

func matches(r *auditinternal.PolicyRule, s *request.State) bool {
	if len(r.Users) > 0 && (s.User == nil || !slices.Contains(r.Users, s.User.GetName())) {
		return false
	}
	if len(r.UserGroups) > 0 {
		if s.User == nil || !slices.ContainsFunc(s.User.GetGroups(), func(g string) bool { return slices.Contains(r.UserGroups, g) }) {
			return false
		}
	}
	i := &s.Info
	if len(r.Verbs) > 0 && !slices.Contains(r.Verbs, i.Verb) {
		return false
	}
	switch {
	case len(r.Namespaces) > 0 || len(r.Resources) > 0:
		return i.IsResource && resourceMatches(r, i)
	case len(r.NonResourceURLs) > 0:
		return !i.IsResource && slices.ContainsFunc(r.NonResourceURLs, func(spec string) bool { return pathMatches(spec, i.Path) })
	}
	return true
}

func resourceMatches(r *auditinternal.PolicyRule, i *request.Info) bool {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, i.Namespace) {
		return false
	}
	if len(r.Resources) == 0 {
		return true
	}
	combined := i.Resource
	if i.Subresource != "" {
		combined += "/" + i.Subresource
	}
	for j := range r.Resources {
		g := &r.Resources[j]
		if g.Group != i.Group {
			continue
		}
		if len(g.Resources) == 0 {
			return true
		}
		if len(g.ResourceNames) > 0 && !slices.Contains(g.ResourceNames, i.Name) {
			continue
		}
		for _, res := range g.Resources {
			before, after, nested := strings.Cut(res, "/")
			switch {
			case res == "*", res == combined,
				nested && before == "*" && i.Subresource != "" && after == i.Subresource,
				nested && after == "*" && before == i.Resource:
				return true
			}
		}
	}
	return false
}

// pathMatches reports whether a path is the one of a rule, which may end in "*".
func pathMatches(spec, path string) bool {
	if spec == "*" || spec == path {
		return true
	}
	prefix, ok := strings.CutSuffix(spec, "*")
	return ok && strings.HasPrefix(path, prefix)
}
