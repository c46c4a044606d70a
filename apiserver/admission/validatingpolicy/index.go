package validatingpolicy

import (
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

var (
	policies = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	bindings = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
)

// Objects is what the plug-in reads.
type Objects interface {
	registry.Reader
	// Version returns a number that changes with every change of a resource's objects.
	Version(gvr schema.GroupVersionResource) int64
	// ResourceOf returns the resource that serves a kind.
	ResourceOf(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced, ok bool)
}

// A policy is one with at least one binding.
type policy struct {
	*admissionregistrationv1.ValidatingAdmissionPolicy
	about    admission.Criteria
	program  func() *program
	bindings []binding
}

type binding struct {
	*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	about *admission.Criteria // nil: everything that the policy is about
}

// An index keeps the policies that are bound, in the order of their names.
type index struct {
	objects Objects

	mu       sync.RWMutex
	versions [2]int64
	list     []*policy
	programs map[runtime.Object]func() *program
}

func (x *index) policies() []*policy {
	now := [2]int64{x.objects.Version(policies), x.objects.Version(bindings)}
	x.mu.RLock()
	list, current := x.list, x.versions == now
	x.mu.RUnlock()
	if current {
		return list
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	all, err := x.objects.List(policies, "")
	if err != nil {
		return x.list
	}
	bound, err := x.objects.List(bindings, "")
	if err != nil {
		return x.list
	}
	byPolicy := map[string][]binding{}
	for _, obj := range bound {
		b := obj.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		byPolicy[b.Spec.PolicyName] = append(byPolicy[b.Spec.PolicyName], binding{b, criteria(b.Spec.MatchResources)})
	}
	x.list = nil
	programs := map[runtime.Object]func() *program{}
	for _, obj := range all {
		p := obj.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if len(byPolicy[p.Name]) == 0 || p.Spec.MatchConstraints == nil {
			continue
		}
		if programs[obj] = x.programs[obj]; programs[obj] == nil {
			programs[obj] = sync.OnceValue(func() *program { return compile(p) })
		}
		x.list = append(x.list, &policy{p, *criteria(p.Spec.MatchConstraints), programs[obj], byPolicy[p.Name]})
	}
	x.programs, x.versions = programs, now
	return x.list
}

// everything is what a binding without rules is about.
var everything = []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
}}}

func criteria(m *admissionregistrationv1.MatchResources) *admission.Criteria {
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
