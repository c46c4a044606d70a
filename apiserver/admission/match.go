package admission

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

// Criteria say which writes a webhook or a policy is about.
type Criteria struct {
	Exact      bool // matchPolicy Exact: only in the versions that the rules name
	Rules      []admissionregistrationv1.NamedRuleWithOperations
	Except     []admissionregistrationv1.NamedRuleWithOperations
	Namespaces labels.Selector
	Objects    labels.Selector
}

// Unnamed turns rules that name no objects into those that may.
func Unnamed(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.NamedRuleWithOperations {
	out := make([]admissionregistrationv1.NamedRuleWithOperations, len(rules))
	for i := range rules {
		out[i].RuleWithOperations = rules[i]
	}
	return out
}

// Selector parses a selector that validation has accepted; nothing is selected by
// one that it has not.
func Selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// A Match says in which version of the resource a write is looked at.
type Match struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}

// Exempt reports whether nobody is asked about a write: the configurations of
// admission themselves, so that a broken one can be mended.
func Exempt(a *Attributes) bool { return a.Resource.Group == admissionregistrationv1.GroupName }

// Match returns the version in which a is to be looked at, nil if it is none of
// what the criteria are about.
func (c *Criteria) Match(a *Attributes, objects registry.Reader) (*Match, error) {
	m := c.matchRules(a)
	if m == nil || !c.matchObjects(a) {
		return nil, nil
	}
	if ok, err := c.matchNamespace(a, objects); !ok || err != nil {
		return nil, err
	}
	return m, nil
}

func (c *Criteria) matchRules(a *Attributes) *Match {
	asked := a.RequestVersion()
	if c.matchResource(a, asked) {
		return matched(a, asked)
	}
	if c.Exact || a.Forms == nil || matchAny(c.Except, a, asked) {
		return nil
	}
	for _, gv := range a.Forms.Versions() {
		if gv != asked && c.matchResource(a, gv) {
			return matched(a, gv)
		}
	}
	return nil
}

func matched(a *Attributes, gv schema.GroupVersion) *Match {
	return &Match{Resource: gv.WithResource(a.Resource.Resource), Kind: a.KindIn(gv)}
}

func (c *Criteria) matchResource(a *Attributes, gv schema.GroupVersion) bool {
	return matchAny(c.Rules, a, gv) && !matchAny(c.Except, a, gv)
}

func matchAny(rules []admissionregistrationv1.NamedRuleWithOperations, a *Attributes, gv schema.GroupVersion) bool {
	return slices.ContainsFunc(rules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name)) && matchScope(r.Scope, a) &&
			matchOperation(r.Operations, a.Operation) && either(r.APIGroups, gv.Group) &&
			either(r.APIVersions, gv.Version) && matchPath(r.Resources, a.Resource.Resource, a.Subresource)
	})
}

func either(list []string, wanted string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, wanted)
}

func matchOperation(list []admissionregistrationv1.OperationType, op Operation) bool {
	return slices.Contains(list, admissionregistrationv1.OperationAll) || slices.Contains(list, admissionregistrationv1.OperationType(op))
}

func matchPath(list []string, resource, subresource string) bool {
	return slices.ContainsFunc(list, func(path string) bool {
		r, s, _ := strings.Cut(path, "/")
		return (r == "*" || r == resource) && (s == "*" || s == subresource)
	})
}

func isNamespace(a *Attributes) bool {
	return a.Resource.Group == "" && a.Resource.Resource == "namespaces"
}

func matchScope(scope *admissionregistrationv1.ScopeType, a *Attributes) bool {
	clusterWide := a.Namespace == "" || isNamespace(a)
	switch {
	case scope == nil || *scope == admissionregistrationv1.AllScopes:
		return true
	case *scope == admissionregistrationv1.ClusterScope:
		return clusterWide
	}
	return !clusterWide
}

func (c *Criteria) matchObjects(a *Attributes) bool {
	return c.Objects.Empty() || labelled(a.Object, c.Objects) || labelled(a.Old, c.Objects)
}

func labelled(obj runtime.Object, s labels.Selector) bool {
	m, ok := obj.(metav1.ObjectMetaAccessor)
	return ok && s.Matches(labels.Set(m.GetObjectMeta().GetLabels()))
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// matchNamespace looks at the labels of the object's namespace, or of the object
// if it is a namespace itself. Other objects of the cluster always match.
func (c *Criteria) matchNamespace(a *Attributes, objects registry.Reader) (bool, error) {
	if c.Namespaces.Empty() || a.Namespace == "" && !isNamespace(a) {
		return true, nil
	}
	name := a.Namespace
	if isNamespace(a) {
		if name = a.Name; a.Object != nil && a.Subresource == "" {
			return labelled(a.Object, c.Namespaces), nil
		}
	}
	ns, err := objects.Get(namespaces, "", name)
	if err != nil {
		return false, err
	}
	return labelled(ns, c.Namespaces), nil
}

// Encoded returns both objects as JSON of the version of m; nil for one that is not there.
func (a *Attributes) Encoded(m *Match) (object, old []byte, err error) {
	if a.Object != nil {
		if object, err = a.Forms.Encode(a.Object, m.Resource.GroupVersion(), a.Subresource); err != nil {
			return nil, nil, err
		}
	}
	if a.Old != nil {
		old, err = a.Forms.Encode(a.Old, m.Resource.GroupVersion(), a.Subresource)
	}
	return object, old, err
}

// Values returns both objects in the version of m as JSON values, for expressions.
func (a *Attributes) Values(m *Match) (object, old runtime.Object, err error) {
	one, two, err := a.Encoded(m)
	if err != nil {
		return nil, nil, err
	}
	if object, err = values(one); err != nil {
		return nil, nil, err
	}
	old, err = values(two)
	return object, old, err
}

func values(data []byte) (runtime.Object, error) {
	if data == nil {
		return nil, nil
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	return out, nil
}
