package policy

import (
	"sync"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// Objects is what the plug-ins read.
type Objects interface {
	registry.Reader
	// Version returns a number that changes with every change of a resource's objects.
	Version(gvr schema.GroupVersionResource) int64
	// ResourceOf returns the resource that serves a kind.
	ResourceOf(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced, ok bool)
}

// Environments is what expressions may use; it is made when the first policy is compiled.
var Environments = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// An Expression is one in CEL, with the type that it must have; Name is a variable's.
type Expression struct {
	Name, Text string
	Kind       *celgo.Type
}

// GetName implements cel.NamedExpressionAccessor.
func (e *Expression) GetName() string { return e.Name }

// GetExpression implements cel.ExpressionAccessor.
func (e *Expression) GetExpression() string { return e.Text }

// ReturnTypes implements cel.ExpressionAccessor.
func (e *Expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.Kind} }

// everything is what a binding without rules is about.
var everything = []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
}}}

// Criteria turns what a policy or a binding is about into what is compared; nil is nil.
func Criteria(m *admissionregistrationv1.MatchResources) *admission.Criteria {
	if m == nil {
		return nil
	}
	c := &admission.Criteria{
		Exact: m.MatchPolicy != nil && *m.MatchPolicy == admissionregistrationv1.Exact, Rules: m.ResourceRules, Except: m.ExcludeResourceRules,
		Namespaces: admission.Selector(m.NamespaceSelector), Objects: admission.Selector(m.ObjectSelector),
	}
	if len(c.Rules) == 0 {
		c.Rules = everything
	}
	return c
}

// Versioned shows a write to expressions, in the version of m.
func Versioned(a *admission.Attributes, m *admission.Match) (*upstream.VersionedAttributes, error) {
	object, old, err := a.Values(m)
	if err != nil {
		return nil, err
	}
	who := a.User
	if who == nil {
		who = &user.DefaultInfo{}
	}
	return &upstream.VersionedAttributes{
		Attributes: upstream.NewAttributesRecord(object, old, m.Kind, a.Namespace, a.Name, m.Resource, a.Subresource,
			upstream.Operation(a.Operation), a.Options, a.DryRun, who),
		VersionedKind: m.Kind, VersionedObject: upstream.NewLazyObject(object), VersionedOldObject: upstream.NewLazyObject(old),
	}, nil
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// NamespaceOf is the namespace of the object, nil for objects of the cluster.
func NamespaceOf(objects registry.Reader, a *admission.Attributes) (*corev1.Namespace, error) {
	if a.Namespace == "" || a.Resource == namespaces {
		return nil, nil
	}
	obj, err := objects.Get(namespaces, "", a.Namespace)
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Namespace), nil
}

// nothing is what a policy without parameters is evaluated with.
var nothing = []runtime.Object{nil}
